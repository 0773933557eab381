import Glibc
import Posix

/// The mount table, read from /proc/self/mountinfo.
public enum MountTable {
  /// One line of the table.
  public struct Entry: Sendable, Equatable {
    /// The mount point.
    public let point: ByteString
    /// The per-mount options.
    public let options: String
    /// The file system type, such as `fuse.bundlefs`.
    public let type: String
    /// The mount source.
    public let source: ByteString
    /// The device number, such as `0:45`.
    public let device: String
  }

  /// All mounts, oldest first.
  public static func entries() throws -> [Entry] {
    let table = try ByteString("/proc/self/mountinfo").read()
    return table.split(separator: UInt8(ascii: "\n")).compactMap { entry(ArraySlice($0)) }
  }

  /// Whether something is mounted at a path in the mount namespace of any process.
  public static func isInAnyNamespace(_ point: ByteString) -> Bool {
    let processes = ((try? ByteString("/proc").names()) ?? []).filter { pid_t($0.text) != nil }
    let field = " \(point.text) "
    return processes.contains { process in
      ((try? ("/proc" / process / "mountinfo").readText()) ?? "").contains(field)
    }
  }

  /// The topmost mount at a path.
  public static func entry(at point: ByteString) throws -> Entry? {
    try entries().last { $0.point == point }
  }

  /// The topmost mount at a path, if it is a bundlefs mount.
  public static func bundlefs(at point: ByteString) throws -> Entry? {
    guard let entry = try entry(at: point), entry.type == "fuse.bundlefs" else { return nil }
    return entry
  }

  /// Lazily unmounts everything at the path or below it, newest first, and aborts FUSE connections.
  public static func clear(below path: ByteString) {
    guard let entries = try? entries() else { return }
    for entry in entries.reversed() where entry.point == path || entry.point.hasPrefix(path + "/") {
      abandon(entry.point, isFuse: entry.type.hasPrefix("fuse"))
    }
  }

  /// Lazily unmounts the topmost mount at a path.
  public static func abandon(_ point: ByteString, isFuse: Bool = true) {
    // MNT_FORCE aborts the FUSE connection even if the mount is busy and stays.
    if isFuse { point.withPointer { _ = umount2($0, CInt(MNT_FORCE)) } }
    point.withPointer { _ = umount2($0, CInt(MNT_DETACH)) }
  }

  /// Parses `36 35 0:45 / /point rw,… shared:1 - type source options`, with octal escapes.
  private static func entry(_ line: ArraySlice<UInt8>) -> Entry? {
    let fields = line.split(separator: UInt8(ascii: " ")).map { [UInt8]($0) }
    guard let dash = fields.firstIndex(of: [UInt8(ascii: "-")]), dash >= 6, fields.count > dash + 2 else {
      return nil
    }
    return Entry(
      point: unescaped(fields[4]), options: String(decoding: fields[5], as: UTF8.self),
      type: String(decoding: fields[dash + 1], as: UTF8.self), source: unescaped(fields[dash + 2]),
      device: String(decoding: fields[2], as: UTF8.self))
  }

  private static func unescaped(_ field: [UInt8]) -> ByteString {
    var bytes: [UInt8] = []
    var index = 0
    while index < field.count {
      if field[index] == UInt8(ascii: "\\"), index + 3 < field.count,
        let value = UInt8(String(decoding: field[index + 1...index + 3], as: UTF8.self), radix: 8)
      {
        bytes.append(value)
        index += 4
      } else {
        bytes.append(field[index])
        index += 1
      }
    }
    return ByteString(bytes)
  }
}
