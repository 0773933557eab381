import CLinux
import Glibc

/// A line of the kernel's mount table.
public struct MountTableEntry: Sendable {
  /// The mount's number, which no other mount has while it lasts.
  public let id: Int
  /// The device number of what is mounted, as `FileIdentity` has it.
  public let device: UInt64
  /// Where it is mounted: an absolute path.
  public let mountPoint: [UInt8]
  /// The file system's type, with its subtype.
  public let type: String
  /// The user who mounted it, of a FUSE mount; the kernel's word, which no daemon can change. Else nil.
  public let user: UInt32?

  /// Whether it is one of ours.
  public var isBundlefs: Bool { type == "fuse.bundlefs" }

  /// The mount that is on top at a path; nil if none is.
  public static func top(at path: [UInt8]) -> MountTableEntry? { all().last { $0.mountPoint == path } }

  /// The mounts that this process sees, in the order in which they were made.
  public static func all() -> [MountTableEntry] {
    // Every process may read it.
    let table = (try? Descriptor.open("/proc/self/mountinfo", [.read]).readAll()) ?? []
    return table.split(separator: UInt8(ascii: "\n")).compactMap { MountTableEntry(line: $0) }
  }

  /// Reads a line: `36 35 0:45 / /point rw,… shared:1 - type source options`; nil if it is none.
  public init?(line: ArraySlice<UInt8>) {
    let fields = line.split(separator: UInt8(ascii: " "))
    guard fields.count > 6, let dash = fields[6...].firstIndex(where: { $0.elementsEqual("-".utf8) }),
      dash + 1 < fields.count
    else { return nil }
    id = Int(Self.text(fields[0])) ?? 0
    device = Self.device(fields[2])
    mountPoint = Self.unescape(Array(fields[4]))
    type = Self.text(fields[dash + 1])
    user = type.hasPrefix("fuse") ? fields.dropFirst(dash + 3).first.flatMap { Self.user($0) } : nil
  }

  private static func user(_ options: ArraySlice<UInt8>) -> UInt32? {
    let word = "user_id="
    let option = options.split(separator: UInt8(ascii: ",")).last { $0.starts(with: word.utf8) }
    return option.flatMap { UInt32(text($0.dropFirst(word.utf8.count))) }
  }

  private static func device(_ field: ArraySlice<UInt8>) -> UInt64 {
    let numbers = field.split(separator: UInt8(ascii: ":")).map { UInt32(text($0)) ?? 0 }
    return numbers.count == 2 ? linux_makedev(numbers[0], numbers[1]) : 0
  }

  /// The mount that holds a path: the last of those with the longest mount point above it.
  public static func containing(_ path: [UInt8]) -> MountTableEntry? {
    var found: MountTableEntry?
    for entry in all() where isAbove(entry.mountPoint, path) {
      if entry.mountPoint.count >= found?.mountPoint.count ?? 0 { found = entry }
    }
    return found
  }

  private static func isAbove(_ mountPoint: [UInt8], _ path: [UInt8]) -> Bool {
    let slash = UInt8(ascii: "/")
    return path.starts(with: mountPoint)
      && (mountPoint == [slash] || path.count == mountPoint.count || path[mountPoint.count] == slash)
  }

  private static func text(_ bytes: some Sequence<UInt8>) -> String {
    String(decoding: Array(bytes), as: UTF8.self)
  }

  /// The kernel writes space, tab, newline and backslash as `\` and three octal digits.
  private static func unescape(_ field: [UInt8]) -> [UInt8] {
    var result: [UInt8] = []
    var place = 0
    while place < field.count {
      if field[place] == UInt8(ascii: "\\"), place + 3 < field.count,
        let byte = UInt8(text(field[(place + 1)...(place + 3)]), radix: 8)
      {
        result.append(byte)
        place += 4
      } else {
        result.append(field[place])
        place += 1
      }
    }
    return result
  }
}

/// Tells when the mount table changes.
public struct MountTableWatch: ~Copyable, Sendable {
  private let descriptor: Descriptor

  /// Begins to watch.
  public init() throws(Errno) { descriptor = try Descriptor.open("/proc/self/mountinfo", [.read]) }

  /// To be polled for POLLPRI.
  public var rawValue: CInt { descriptor.rawValue }
}
