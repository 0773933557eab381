import CFuse
import Glibc
import Posix

/// A READDIR or READDIRPLUS reply under construction.
public struct DirectoryBuffer: ~Copyable {
  private let buffer: UnsafeMutableRawBufferPointer
  /// The number of bytes that are filled.
  public private(set) var used = 0

  /// Creates a buffer of the size that the kernel requested.
  public init(size: Int) {
    buffer = .allocate(byteCount: max(size, 1), alignment: 8)
  }

  deinit { buffer.deallocate() }

  var start: UnsafePointer<CChar>? {
    UnsafeRawPointer(buffer.baseAddress.unsafelyUnwrapped).assumingMemoryBound(to: CChar.self)
  }

  /// Adds a READDIR entry.
  /// - Parameter cookie: the offset at which the listing continues after this entry.
  /// - Returns: false if the entry does not fit.
  public mutating func add(_ name: CName, inodeNumber: UInt64, kind: FileKind, cookie: UInt64) -> Bool {
    var stat = stat()
    stat.st_ino = UInt(inodeNumber)
    stat.st_mode = kind.rawValue
    return append { start, capacity in
      fuse_add_direntry(nil, start, capacity, name, &stat, off_t(cookie))
    }
  }

  /// Adds a READDIRPLUS entry with nodeid 0, which counts as no lookup: `.`, `..`, and names whose lookup failed.
  /// - Returns: as `add`.
  public mutating func addNameOnly(_ name: CName, inodeNumber: UInt64, kind: FileKind, cookie: UInt64) -> Bool
  {
    var parameters = fuse_entry_param()
    parameters.attr.st_ino = UInt(inodeNumber)
    parameters.attr.st_mode = kind.rawValue
    return append { start, capacity in
      fuse_add_direntry_plus(nil, start, capacity, name, &parameters, off_t(cookie))
    }
  }

  /// Adds a READDIR entry, or a READDIRPLUS entry with nodeid 0.
  /// - Returns: as `add`.
  public mutating func addNameOnly(
    _ name: CName, inodeNumber: UInt64, kind: FileKind, cookie: UInt64, withEntries: Bool
  ) -> Bool {
    withEntries
      ? addNameOnly(name, inodeNumber: inodeNumber, kind: kind, cookie: cookie)
      : add(name, inodeNumber: inodeNumber, kind: kind, cookie: cookie)
  }

  /// Adds a READDIRPLUS entry, which counts as one lookup if the kernel accepts the reply. Requires
  /// `hasRoomForEntry`.
  public mutating func add(_ name: CName, entry: EntryReply, cookie: UInt64) {
    var parameters = entry.parameters
    let fits = append { start, capacity in
      fuse_add_direntry_plus(nil, start, capacity, name, &parameters, off_t(cookie))
    }
    assert(fits, "requires hasRoomForEntry")
  }

  /// Whether a READDIRPLUS entry fits. Checked before the lookup, because a lookup that is not sent must not count.
  public func hasRoomForEntry(nameLength: Int) -> Bool {
    // FUSE_DIRENTPLUS_SIZE of <linux/fuse.h>.
    used + (152 + nameLength + 7) / 8 * 8 <= buffer.count
  }

  private mutating func append(_ add: (UnsafeMutablePointer<CChar>?, Int) -> Int) -> Bool {
    let capacity = buffer.count - used
    let start = buffer.baseAddress.unsafelyUnwrapped.advanced(by: used).assumingMemoryBound(to: CChar.self)
    let size = add(start, capacity)
    guard size <= capacity else { return false }
    used += size
    return true
  }
}
