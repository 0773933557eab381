import CFuse
import Glibc
import Posix

/// The bytes of a READDIR or READDIRPLUS reply, filled entry by entry.
public struct DirectoryBuffer: ~Copyable {
  private let buffer: UnsafeMutableRawBufferPointer
  private(set) var used = 0

  /// A buffer for as many bytes as the kernel asked for.
  public init(size: Int) {
    buffer = .allocate(byteCount: max(size, 1), alignment: 8)
  }

  deinit { buffer.deallocate() }

  var start: UnsafePointer<CChar>? {
    UnsafeRawPointer(buffer.baseAddress.unsafelyUnwrapped).assumingMemoryBound(to: CChar.self)
  }

  /// Adds a name.
  /// - Parameter cookie: where a listing goes on after this entry.
  /// - Returns: false, and nothing is added, when it does not fit.
  public mutating func add(_ name: CName, inodeNumber: UInt64, kind: FileKind, cookie: UInt64) -> Bool {
    var stat = stat()
    stat.st_ino = UInt(inodeNumber)
    stat.st_mode = kind.rawValue
    return append { place, room in
      fuse_add_direntry(nil, place, room, name, &stat, off_t(cookie))
    }
  }

  /// Adds a name without an entry to a READDIRPLUS reply: `.` and `..`, and what cannot be looked up.
  /// - Returns: as `add`.
  public mutating func addNameOnly(_ name: CName, inodeNumber: UInt64, kind: FileKind, cookie: UInt64) -> Bool
  {
    var parameters = fuse_entry_param()
    parameters.attr.st_ino = UInt(inodeNumber)
    parameters.attr.st_mode = kind.rawValue
    return append { place, room in
      fuse_add_direntry_plus(nil, place, room, name, &parameters, off_t(cookie))
    }
  }

  /// Adds a name to a reply of either kind; to READDIRPLUS without an entry.
  /// - Returns: as `add`.
  public mutating func addNameOnly(
    _ name: CName, inodeNumber: UInt64, kind: FileKind, cookie: UInt64, withEntries: Bool
  ) -> Bool {
    withEntries
      ? addNameOnly(name, inodeNumber: inodeNumber, kind: kind, cookie: cookie)
      : add(name, inodeNumber: inodeNumber, kind: kind, cookie: cookie)
  }

  /// Adds a name with its entry, which counts as one lookup once the reply is taken. It must fit: see
  /// `hasRoomForEntry`.
  public mutating func add(_ name: CName, entry: EntryReply, cookie: UInt64) {
    var parameters = entry.parameters
    let fits = append { place, room in
      fuse_add_direntry_plus(nil, place, room, name, &parameters, off_t(cookie))
    }
    assert(fits, "room was asked for")
  }

  /// Whether a name of that many bytes fits with its entry. Asked before the lookup, since a lookup that is
  /// not delivered must not count.
  public func hasRoomForEntry(nameLength: Int) -> Bool {
    // The sizes of fuse_direntplus and its alignment, as the kernel's <linux/fuse.h> defines them.
    used + (152 + nameLength + 7) / 8 * 8 <= buffer.count
  }

  private mutating func append(_ add: (UnsafeMutablePointer<CChar>?, Int) -> Int) -> Bool {
    let room = buffer.count - used
    let place = buffer.baseAddress.unsafelyUnwrapped.advanced(by: used).assumingMemoryBound(to: CChar.self)
    let size = add(place, room)
    guard size <= room else { return false }
    used += size
    return true
  }
}
