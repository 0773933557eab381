import CLinux
import CLibrary

extension Descriptor {
  /// Calls pread(2) until the buffer is full or the file ends.
  /// - Parameter end: the expected end of the file, which saves the last call that would return 0.
  /// - Returns: the number of bytes read.
  public func read(
    into buffer: UnsafeMutableRawBufferPointer, at offset: Int64, end: UInt64? = nil
  ) throws(Errno) -> Int {
    var done = 0
    while done < buffer.count {
      let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[done...])
      let count = try checked { pread(rawValue, rest.baseAddress, rest.count, off_t(offset) + done) }
      if count == 0 { break }
      done += count
      if let end, UInt64(offset) + UInt64(done) == end { break }
    }
    return done
  }

  /// Reads from offset 0 to the end, or until more than `limit` bytes were read.
  public func readAll(limit: Int = .max) throws(Errno) -> [UInt8] {
    try readContent(limit: limit) { chunk, offset throws(Errno) in try read(into: chunk, at: offset) }
  }

  /// Calls read(2) until the end; for pipes.
  /// - Throws: EFBIG for more than 256 MiB.
  public func readToEnd() throws(Errno) -> [UInt8] {
    var content: [UInt8] = []
    try withUnsafeTemporaryBytes(128 * 1024) { chunk throws(Errno) in
      while true {
        let count = try checked { CLibrary.read(rawValue, chunk.baseAddress, chunk.count) }
        if count == 0 { return }
        content += chunk[..<count]
        if content.count > 256 << 20 { throw Errno.fileTooLarge }
      }
    }
    return content
  }

  /// Calls pwrite(2) until all bytes are written.
  /// - Throws: ENOSPC, EIO and other errors of pwrite(2).
  public func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(Errno) {
    var done = 0
    while done < bytes.count {
      let rest = UnsafeRawBufferPointer(rebasing: bytes[done...])
      done += try checked { pwrite(rawValue, rest.baseAddress, rest.count, off_t(offset) + done) }
    }
  }

  /// Writes all bytes with one write(2).
  /// - Throws: errors of write(2); EINVAL after a short write.
  public func writeInOneCall(_ bytes: [UInt8]) throws(Errno) {
    let count = try checked { CLibrary.write(rawValue, bytes, bytes.count) }
    if count != bytes.count { throw .invalidArgument }
  }

  /// Calls pwrite(2) once.
  /// - Returns: how many bytes were written.
  public func writeOnce(_ bytes: [UInt8], at offset: Int64) throws(Errno) -> Int {
    try checked { pwrite(rawValue, bytes, bytes.count, off_t(offset)) }
  }

  /// Calls pwrite(2) once, with a copy as `withPageAlignedCopy` makes it.
  /// - Returns: how many bytes were written.
  public func writeOnce(aligned bytes: [UInt8], at offset: Int64) throws(Errno) -> Int {
    try bytes.withPageAlignedCopy { bytes throws(Errno) in
      try checked { pwrite(rawValue, bytes.baseAddress, bytes.count, off_t(offset)) }
    }
  }

  /// `SEEK_DATA`.
  public static var seekData: CInt { CInt(linux_SEEK_DATA) }

  /// `SEEK_HOLE`.
  public static var seekHole: CInt { CInt(linux_SEEK_HOLE) }

  /// Calls lseek(2) with `SEEK_DATA` or `SEEK_HOLE`.
  /// - Throws: ENXIO beyond the end; EINVAL for another `whence`.
  public func seek(_ offset: Int64, whence: CInt) throws(Errno) -> Int64 {
    guard whence == CInt(linux_SEEK_DATA) || whence == CInt(linux_SEEK_HOLE) else { throw .invalidArgument }
    return Int64(try checked { lseek(rawValue, off_t(offset), whence) })
  }

  /// Opens an unnamed file (`O_TMPFILE`) for reading and writing.
  /// - Throws: EACCES, ENOENT, ENOSPC, EROFS, EMFILE.
  public static func temporary(in directory: CName) throws(Errno) -> Descriptor {
    Descriptor(owning: try checked { linux_temporary_file(directory) })
  }

  /// Opens a file in memory by memfd_create(2).
  public static func memory(name: CName) throws(Errno) -> Descriptor {
    Descriptor(owning: try checked { linux_memory_file(name) })
  }

  /// The writing end of a pipe whose reading end is closed: poll(2) reports `POLLERR`.
  /// - Throws: EMFILE, ENFILE.
  public static func brokenPipe() throws(Errno) -> Descriptor {
    var ends: [CInt] = [-1, -1]
    _ = try checked { linux_pipe(&ends) }
    close(ends[0])
    return Descriptor(owning: ends[1])
  }

  /// Calls fallocate(2) with `FALLOC_FL_PUNCH_HOLE`.
  /// - Throws: EOPNOTSUPP.
  public func punchHole(at offset: Int64, count: Int64) throws(Errno) {
    _ = try checked { linux_punch_hole(rawValue, offset, count) }
  }

  /// Calls ioctl(2) with a buffer that the command fills.
  /// - Returns: `size` bytes; those that the command does not set are 0.
  public func ioctl(_ command: UInt32, size: Int) throws(Errno) -> [UInt8] {
    var answer = [UInt8](repeating: 0, count: size)
    try ioctl(command, &answer)
    return answer
  }

  /// Calls ioctl(2) with a buffer that the command reads and fills.
  public func ioctl(_ command: UInt32, _ buffer: inout [UInt8]) throws(Errno) {
    _ = try checked { linux_ioctl(rawValue, UInt(command), &buffer) }
  }
}

/// Calls ioctl(2).
/// - Parameter argument: the command's argument, which the call may modify.
public func ioctl<Argument>(_ file: CInt, _ command: UInt32, _ argument: inout Argument) throws(Errno)
  -> CInt
{
  try withUnsafeMutablePointer(to: &argument) { argument throws(Errno) in
    try checked { linux_ioctl(file, UInt(command), argument) }
  }
}

/// Reads from offset 0 to the end, or until more than `limit` bytes were read.
/// - Parameter read: fills a buffer from an offset and returns the number of bytes; a short read is the end.
public func readContent(
  limit: Int, by read: (UnsafeMutableRawBufferPointer, Int64) throws(Errno) -> Int
) throws(Errno) -> [UInt8] {
  var content: [UInt8] = []
  try withUnsafeTemporaryBytes(128 * 1024) { chunk throws(Errno) in
    while content.count <= limit {
      let count = try read(chunk, Int64(content.count))
      content += chunk[..<count]
      if count < chunk.count { return }
    }
  }
  return content
}

/// The last line that a child process printed to a file.
public enum LastLine {
  /// Reads the last line of the first 4 KiB; nil if the file is empty.
  public static func read(from file: CInt) -> Substring? {
    var bytes = [UInt8](repeating: 0, count: 4096)
    let count = max(0, pread(file, &bytes, bytes.count, 0))
    return String(decoding: bytes[..<count], as: UTF8.self).split(separator: "\n").last
  }
}
