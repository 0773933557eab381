import CLinux
import CLibrary

/// Changes of content. They need a descriptor that is open for writing.
extension Descriptor {
  /// Calls pwrite(2) until all is written.
  /// - Parameter appends: whether to write at the end instead (`RWF_APPEND`).
  /// - Throws: the error of the first call.
  /// - Returns: how many bytes were written before a later error.
  public func writeAll(
    _ bytes: UnsafeRawBufferPointer, at offset: Int64, appends: Bool = false
  ) throws(Errno) -> Int {
    var done = 0
    while done < bytes.count {
      let rest = UnsafeRawBufferPointer(rebasing: bytes[done...])
      let count: Int
      do throws(Errno) {
        count = try checked {
          appends
            ? linux_append(rawValue, rest.baseAddress, rest.count)
            : pwrite(rawValue, rest.baseAddress, rest.count, off_t(offset) &+ done)
        }
      } catch {
        if done > 0 { return done }
        throw error
      }
      if count == 0 { return done }
      done += count
    }
    return done
  }

  /// Calls fallocate(2).
  public func allocate(mode: CInt, at offset: Int64, count: Int64) throws(Errno) {
    _ = try checked { linux_allocate(rawValue, mode, offset, count) }
  }

  /// Calls fsync(2), or fdatasync(2).
  public func synchronize(dataOnly: Bool) throws(Errno) {
    _ = try checked { dataOnly ? fdatasync(rawValue) : fsync(rawValue) }
  }

  /// Shares the content of another file of the same file system (`FICLONE`).
  /// - Throws: EOPNOTSUPP, EXDEV, EINVAL, ENOTTY if the file systems cannot.
  public func cloneContent(of source: borrowing Descriptor) throws(Errno) {
    let number = source.rawValue
    _ = try checked { linux_clone_content(number, rawValue) }
  }

  /// Calls copy_file_range(2).
  /// - Throws: EXDEV, EOPNOTSUPP, EINVAL, ENOSYS if the file systems cannot.
  /// - Returns: how many bytes were copied; 0 at the end of the source.
  public func copyRange(
    of source: borrowing Descriptor, at offset: Int64, count: Int
  ) throws(Errno) -> Int {
    let number = source.rawValue
    return try checked { linux_copy_range(number, rawValue, offset, count) }
  }

  /// Calls sync_file_range(2) with `SYNC_FILE_RANGE_WRITE`. Errors show at `synchronize`.
  /// - Parameter waits: whether to wait until the range is written.
  public func writeBack(at offset: Int64, count: Int64, waits: Bool) {
    _ = linux_write_back(rawValue, offset, count, waits)
  }
}
