import Glibc
import Posix

/// What is mounted where, from /proc/self/mountinfo.
public enum MountTable {
  /// One line of the table.
  public struct Entry: Sendable, Equatable {
    /// The mount point.
    public let point: ByteString
    /// The options of the mount itself.
    public let options: String
    /// The type, as `fuse.bundlefs`.
    public let type: String
    /// What is mounted.
    public let source: ByteString
    /// The device's numbers, as `0:45`.
    public let device: String
  }

  /// All mounts, in the order in which they were made.
  public static func entries() throws -> [Entry] {
    let table = try ByteString("/proc/self/mountinfo").read()
    return table.split(separator: UInt8(ascii: "\n")).compactMap { entry(ArraySlice($0)) }
  }

  /// The uppermost mount at exactly that path.
  public static func entry(at point: ByteString) throws -> Entry? {
    try entries().last { $0.point == point }
  }

  /// The uppermost mount at that path, if it is one of bundlefs's.
  public static func bundlefs(at point: ByteString) throws -> Entry? {
    guard let entry = try entry(at: point), entry.type == "fuse.bundlefs" else { return nil }
    return entry
  }

  /// Takes away, lazily, all that is mounted at the path or below it, the newest first. Requests that hang
  /// in a FUSE mount are ended.
  public static func clear(below path: ByteString) {
    guard let entries = try? entries() else { return }
    for entry in entries.reversed() where entry.point == path || entry.point.hasPrefix(path + "/") {
      abandon(entry.point, isFuse: entry.type.hasPrefix("fuse"))
    }
  }

  /// Takes away the uppermost mount at a path, whatever still uses it.
  public static func abandon(_ point: ByteString, isFuse: Bool = true) {
    // The forced unmount aborts the connection even where the mount stays because it is busy.
    if isFuse { point.withPointer { _ = umount2($0, CInt(MNT_FORCE)) } }
    point.withPointer { _ = umount2($0, CInt(MNT_DETACH)) }
  }

  /// `36 35 0:45 / /point rw,… shared:1 - type source options`, with octal escapes.
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
    var place = 0
    while place < field.count {
      if field[place] == UInt8(ascii: "\\"), place + 3 < field.count,
        let value = UInt8(String(decoding: field[place + 1...place + 3], as: UTF8.self), radix: 8)
      {
        bytes.append(value)
        place += 4
      } else {
        bytes.append(field[place])
        place += 1
      }
    }
    return ByteString(bytes)
  }
}
