import CLibrary
import Posix

/// An extended attribute of a table of strings that a program is writing through a mount: it has all keys that are wanted, and
/// is not merged with others. Once no program has it open, the mount stores the difference instead. A process that dies
/// before leaves the attribute.
enum StagedTableMark {
  /// The second one is for processes without `CAP_SYS_ADMIN`.
  static let names: [StaticString] = ["trusted.bundlefs.table", "user.bundlefs.table"]
  private static let value = Array("whole".utf8)

  fileprivate static func set(on file: borrowing Descriptor) throws(Errno) {
    var refusal = Errno.notSupported
    for name in names {
      do throws(Errno) {
        return try value.withBytes { value throws(Errno) in
          try file.setExtendedAttribute(name.cName, value, flags: 0)
        }
      } catch {
        guard [.notPermitted, .notSupported].contains(error) else { throw error }
        refusal = error
      }
    }
    throw refusal
  }
}

extension Descriptor {
  /// Marks a table, which may be opened in any way.
  func markAsStaged() throws(Errno) {
    try permittingAttributes { () throws(Errno) in try StagedTableMark.set(on: self) }
  }

  func removeStagingMark() throws(Errno) {
    for name in StagedTableMark.names {
      do throws(Errno) {
        try permittingAttributes { () throws(Errno) in try removeIfPresent(name.cName) }
      } catch {
        if error != .notPermitted { throw error }
      }
    }
  }

  /// Without privileges, a program changes the attributes of users only where it may write to the file.
  private func permittingAttributes(_ body: () throws(Errno) -> Void) throws(Errno) {
    do throws(Errno) { return try body() } catch {
      if error != .permissionDenied { throw error }
    }
    let mode = try attributes().mode & 0o7777
    try changeMode(mode | 0o200)
    defer { try? changeMode(mode) }
    try body()
  }
}

extension LayerDirectory {
  /// Whether an entry is a table that a program is writing, or was when a process died.
  /// - Throws: ESTALE if it is another file by now.
  public func isStagedTable(_ name: CName, identity: FileIdentity) throws(Errno) -> Bool {
    if isInArchive || identity.isMergedTable { return false }
    for mark in StagedTableMark.names {
      do throws(Errno) {
        let none = UnsafeMutableRawBufferPointer(start: nil, count: 0)
        if try extendedAttribute(mark.cName, of: name, identity: identity, into: none) > 0 { return true }
      } catch {
        let isNone = [.noData, .notSupported, .notPermitted, .permissionDenied].contains(error)
        if !isNone { throw error }
      }
    }
    return false
  }
}
