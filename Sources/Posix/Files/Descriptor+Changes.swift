import CLinux
import CLibrary

/// Changes of attributes. All work through any descriptor, `O_PATH` included.
extension Descriptor {
  /// Sets attributes, in an order in which none undoes another: a new owner clears the set-user-ID bit, and a new size
  /// sets the times.
  /// - Throws: errors of chown(2), chmod(2), truncate(2) and utimensat(2).
  public func change(_ changes: AttributeChanges) throws(Errno) {
    if changes.setsOwner {
      try changeOwner(changes.owner, group: changes.group)
    }
    if let permissions = changes.permissions { try changeMode(permissions) }
    if let size = changes.size {
      try resize(size)
      if changes.clearsPrivileges { try clearPrivileges() }
    }
    if changes.accessed != nil || changes.modified != nil {
      try setTimes(accessed: changes.accessed, modified: changes.modified)
    }
  }

  /// Calls fchownat(2).
  /// - Parameters:
  ///   - owner: nil keeps the owner.
  ///   - group: nil keeps the group.
  public func changeOwner(_ owner: UInt32?, group: UInt32?) throws(Errno) {
    // An ID of -1 would mean no change.
    if owner == .max || group == .max { throw .invalidArgument }
    _ = try checked {
      fchownat(rawValue, "", owner ?? .max, group ?? .max, CInt(linux_AT_EMPTY_PATH))
    }
  }

  /// Calls fchmodat2(2).
  /// - Throws: EOPNOTSUPP for a symbolic link.
  public func changeMode(_ mode: UInt32) throws(Errno) {
    _ = try checked { linux_change_mode(rawValue, mode & 0o7777) }
  }

  /// Calls ftruncate(2) or truncate(2).
  /// - Throws: EFBIG; ETXTBSY for a program that runs; EINVAL for what is not a regular file.
  public func resize(_ size: UInt64) throws(Errno) {
    guard let size = Int64(exactly: size) else { throw .fileTooLarge }
    _ = try checked { linux_resize(rawValue, size) }
  }

  /// Clears the set-user-ID bit, and the set-group-ID bit if it is not the mark of mandatory locking, as the kernel does
  /// when a caller without `CAP_FSETID` changes a file.
  private func clearPrivileges() throws(Errno) {
    let mode = try attributes().mode
    var kept = mode & ~UInt32(S_ISUID)
    if mode & UInt32(S_IXGRP) != 0 { kept &= ~UInt32(S_ISGID) }
    if kept != mode { try changeMode(kept) }
  }

  /// Calls utimensat(2).
  /// - Parameters:
  ///   - accessed: nil keeps the time.
  ///   - modified: nil keeps the time.
  public func setTimes(
    accessed: AttributeChanges.Time?, modified: AttributeChanges.Time?
  ) throws(Errno) {
    let times = (Self.timespec(accessed), Self.timespec(modified))
    _ = try withUnsafePointer(to: times) { pointer throws(Errno) in
      try pointer.withMemoryRebound(to: CLibrary.timespec.self, capacity: 2) { times throws(Errno) in
        try checked { utimensat(rawValue, "", times, CInt(linux_AT_EMPTY_PATH)) }
      }
    }
  }

  private static func timespec(_ time: AttributeChanges.Time?) -> timespec {
    switch time {
    case nil: CLibrary.timespec(tv_sec: 0, tv_nsec: Int(linux_UTIME_OMIT))
    case .now: CLibrary.timespec(tv_sec: 0, tv_nsec: Int(linux_UTIME_NOW))
    case .at(let time): CLibrary.timespec(tv_sec: Int(time.seconds), tv_nsec: Int(time.nanoseconds))
    }
  }
}
