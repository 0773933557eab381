import CLinux
import Glibc

/// A name or path as the system calls take it: bytes that end with NUL, valid for the call only.
public typealias CName = UnsafePointer<CChar>

/// How a file is opened; every descriptor is closed on exec.
public struct OpenFlags: OptionSet, Sendable {
  /// The bits of open(2).
  public let rawValue: CInt

  /// The flags of these bits.
  public init(rawValue: CInt) { self.rawValue = rawValue }

  /// For reading.
  public static let read = OpenFlags(rawValue: O_RDONLY)
  /// For writing.
  public static let write = OpenFlags(rawValue: O_WRONLY)
  /// For both.
  public static let readWrite = OpenFlags(rawValue: O_RDWR)
  /// Only a place in the tree: needs no permission on the file itself and touches nothing.
  public static let pathOnly = OpenFlags(rawValue: CInt(linux_O_PATH))
  /// Fails with ENOTDIR on anything but a directory.
  public static let directory = OpenFlags(rawValue: O_DIRECTORY)
  /// Fails with ELOOP on a symbolic link (with `pathOnly`, opens the link itself).
  public static let noFollow = OpenFlags(rawValue: O_NOFOLLOW)
  /// Never waits, as a fifo's open would.
  public static let nonBlocking = OpenFlags(rawValue: O_NONBLOCK)
  /// A terminal does not become the controlling one.
  public static let noControllingTerminal = OpenFlags(rawValue: O_NOCTTY)
}

/// An open file descriptor, closed when its owner lets it go.
public struct Descriptor: ~Copyable, Sendable {
  /// The number; non-negative.
  public let rawValue: CInt

  /// Takes over a descriptor that nobody else will close.
  public init(owning rawValue: CInt) { self.rawValue = rawValue }

  deinit { close(rawValue) }

  /// The number, which the caller now has to close.
  public consuming func release() -> CInt {
    let number = rawValue
    discard self
    return number
  }

  /// Opens a path, relative to the working directory; symbolic links are followed unless the flags say
  /// otherwise.
  public static func open(_ path: CName, _ flags: OpenFlags) throws(Errno) -> Descriptor {
    Descriptor(
      owning: try checked { linux_openat(AT_FDCWD, path, flags.rawValue | O_CLOEXEC) })
  }

  /// Opens an entry of this directory.
  public func open(_ name: CName, _ flags: OpenFlags) throws(Errno) -> Descriptor {
    Descriptor(owning: try checked { linux_openat(rawValue, name, flags.rawValue | O_CLOEXEC) })
  }

  /// A path that leads this process to what is open, whatever its names are by now.
  public var procPath: [UInt8] { Array("/proc/self/fd/\(rawValue)".utf8) }

  /// Runs the body with a path by which inotify_add_watch(2), which takes nothing else, finds an entry of this
  /// directory, or the directory itself: the path from within it, since the way through `/proc` takes several
  /// microseconds more.
  /// - Parameter name: nil for the directory itself.
  public func withWatchPath<Result>(
    of name: [UInt8]? = nil, _ body: (CName) throws(Errno) -> Result
  ) throws(Errno) -> Result {
    if linux_enter_directory(rawValue) {
      defer { linux_leave_directory() }
      return try withCName(name ?? [UInt8(ascii: ".")], body)
    }
    // Without the name it needs no right to search the directory.
    return try withCName(procPath + (name.map { [UInt8(ascii: "/")] + $0 } ?? []), body)
  }

  /// The open file's own attributes.
  public func attributes() throws(Errno) -> FileStatus {
    var raw = linux_attributes()
    _ = try checked { linux_fstatx(rawValue, &raw) }
    return FileStatus(raw)
  }

  /// The attributes of an entry of this directory; a symbolic link is not followed.
  public func attributes(of name: CName) throws(Errno) -> FileStatus {
    var raw = linux_attributes()
    _ = try checked { linux_statx(rawValue, name, &raw) }
    return FileStatus(raw)
  }

  /// Whether this directory has an entry of that name, of any kind.
  public func contains(_ name: CName) throws(Errno) -> Bool {
    do throws(Errno) {
      _ = try attributes(of: name)
      return true
    } catch {
      if error == .noSuchFileOrDirectory || error == .notDirectory || error == .fileNameTooLong {
        return false
      }
      throw error
    }
  }

  /// Reads at an offset until the buffer is full or the file ends; the count of bytes.
  /// - Parameter end: where the file is said to end; what ends there is not asked for more.
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

  /// Where a symbolic link (opened with `pathOnly`) points; its bytes, without NUL.
  public func linkTarget() throws(Errno) -> [UInt8] {
    // PATH_MAX bounds what symlink(2) accepts on every Linux file system.
    try withUnsafeTemporaryBytes(4097) { buffer throws(Errno) in
      let start = buffer.baseAddress.unsafelyUnwrapped.assumingMemoryBound(to: CChar.self)
      let count = try checked { readlinkat(rawValue, "", start, buffer.count) }
      return [UInt8](buffer.prefix(count))
    }
  }

  /// The `whence` of lseek(2) that looks for a hole.
  public static var seekHole: CInt { CInt(linux_SEEK_HOLE) }

  /// The next data (or hole) at or after an offset, as lseek(2) finds it.
  /// - Throws: ENXIO beyond the end; EINVAL for another `whence`.
  public func seek(_ offset: Int64, whence: CInt) throws(Errno) -> Int64 {
    guard whence == CInt(linux_SEEK_DATA) || whence == CInt(linux_SEEK_HOLE) else { throw .invalidArgument }
    return Int64(try checked { lseek(rawValue, off_t(offset), whence) })
  }

  /// Figures of the file system that holds the open file.
  public func statvfs() throws(Errno) -> statvfs {
    var figures = Glibc.statvfs()
    _ = try checked { fstatvfs(rawValue, &figures) }
    return figures
  }

  /// The flags of the mount that holds the open file, as statvfs(3) has them.
  public func mountFlags() throws(Errno) -> UInt { UInt(try statvfs().f_flag) }

  /// The magic number of the file system that holds the open file (statfs(2) lists them).
  public func fileSystemType() throws(Errno) -> Int {
    try checked { linux_fstatfs_type(rawValue) }
  }

  /// A private, read-only view of the mount that holds this directory, from it down, in which nothing that is
  /// mounted below is seen and no device can be opened.
  /// - Throws: EPERM without CAP_SYS_ADMIN; EINVAL where the mount may not be cloned; ENOSYS before Linux
  ///   5.12.
  public func cloneMount() throws(Errno) -> Descriptor {
    Descriptor(owning: try checked { linux_clone_mount(rawValue) })
  }

  /// Opens a directory, as a place only, by an absolute path on which no symbolic link lies.
  /// - Returns: the directory, and the number of the mount that holds it.
  /// - Throws: ELOOP where there is a link; ENOSYS before Linux 5.8.
  public static func openNoSymlinks(_ path: CName, mount: inout Int) throws(Errno) -> Descriptor {
    var number: UInt64 = 0
    let descriptor = Descriptor(owning: try checked { linux_open_without_links(path, &number) })
    mount = Int(clamping: number)
    return descriptor
  }
}

/// Files without a name.
extension Descriptor {
  /// Makes a file that nobody else can open, and that goes with its descriptor.
  /// - Parameter directory: where its content is kept.
  /// - Throws: EACCES, ENOENT, ENOSPC, EROFS, EMFILE.
  public static func temporary(in directory: CName) throws(Errno) -> Descriptor {
    Descriptor(owning: try checked { linux_temporary_file(directory) })
  }

  /// Bytes that its file system has room for.
  public func freeBytes() throws(Errno) -> UInt64 {
    let figures = try statvfs()
    let (bytes, isMore) = UInt64(figures.f_bavail).multipliedReportingOverflow(by: UInt64(figures.f_frsize))
    return isMore ? .max : bytes
  }

  /// Writes all of the bytes at an offset.
  /// - Throws: ENOSPC and what else pwrite(2) answers.
  public func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(Errno) {
    var done = 0
    while done < bytes.count {
      let rest = UnsafeRawBufferPointer(rebasing: bytes[done...])
      done += try checked { pwrite(rawValue, rest.baseAddress, rest.count, off_t(offset) + done) }
    }
  }

  /// Gives the room of a part back, which from then on reads as zeros.
  /// - Throws: EOPNOTSUPP where the file system cannot.
  public func punchHole(at offset: Int64, count: Int64) throws(Errno) {
    _ = try checked { linux_punch_hole(rawValue, offset, count) }
  }
}

/// Runs the body with a buffer of that many bytes, on the stack when it is small.
@inline(__always)
public func withUnsafeTemporaryBytes<Result: ~Copyable>(
  _ count: Int, _ body: (UnsafeMutableRawBufferPointer) throws(Errno) -> Result
) throws(Errno) -> Result {
  // The standard library's function erases the error's type, so it travels as a value.
  let outcome: Swift.Result<Result, Errno> = withUnsafeTemporaryAllocation(byteCount: count, alignment: 16) {
    buffer in
    do throws(Errno) {
      return .success(try body(buffer))
    } catch {
      return .failure(error)
    }
  }
  return try outcome.get()
}

/// Runs the body with the bytes as a system call takes them. Bytes after a NUL are not seen by the call.
public func withCName<Result: ~Copyable>(_ bytes: [UInt8], _ body: (CName) throws(Errno) -> Result)
  throws(Errno)
  -> Result
{
  try withUnsafeTemporaryBytes(bytes.count + 1) { buffer throws(Errno) in
    buffer.copyBytes(from: bytes)
    buffer[bytes.count] = 0
    return try body(
      UnsafeRawPointer(buffer.baseAddress.unsafelyUnwrapped).assumingMemoryBound(to: CChar.self))
  }
}

/// The absolute path without symbolic links of what a path leads to.
/// - Throws: ENOENT, EACCES, ELOOP: as realpath(3) answers.
public func realPath(_ path: [UInt8]) throws(Errno) -> [UInt8] {
  try withCName(path) { name throws(Errno) in
    guard let found = realpath(name, nil) else { throw .current }
    defer { free(found) }
    return Array(UnsafeRawBufferPointer(start: found, count: strlen(found)))
  }
}

/// Everything that can be read from the beginning on.
/// - Parameters:
///   - limit: when more bytes than these were read, that is enough.
///   - read: fills a buffer from an offset; fewer bytes than it holds are the last.
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

/// The mounts of this process's namespace.
public enum Mounts {
  /// Unmounts what is on top at a path; a symbolic link there is not followed.
  /// - Parameter isLazy: takes it out of sight at once, and lets it end when nobody uses it any more.
  /// - Throws: EBUSY while it is used; EPERM without CAP_SYS_ADMIN; EINVAL where nothing is mounted.
  public static func unmount(_ path: CName, isLazy: Bool) throws(Errno) {
    _ = try checked { linux_unmount(path, isLazy) }
  }

  /// Changes the flags of what is mounted at a path.
  /// - Parameter flags: all that it has from then on, as mount(2) has them.
  /// - Throws: EPERM without CAP_SYS_ADMIN; EINVAL where nothing is mounted.
  public static func remount(_ path: CName, flags: UInt) throws(Errno) {
    _ = try checked { mount(nil, path, nil, UInt(MS_REMOUNT) | flags, nil) }
  }

  /// Goes to another mount namespace: to its root.
  /// - Parameter file: what stands for it, as /proc/PID/ns/mnt.
  /// - Throws: EPERM without CAP_SYS_ADMIN; EINVAL for another file, or with a second thread.
  public static func enterNamespace(_ file: borrowing Descriptor) throws(Errno) {
    _ = try checked { linux_enter_mount_namespace(file.rawValue) }
  }
}

extension Descriptor {
  /// Writes bytes in one call.
  /// - Throws: what write(2) answers; EINVAL if it took a part only.
  public func writeInOneCall(_ bytes: [UInt8]) throws(Errno) {
    let count = try checked { Glibc.write(rawValue, bytes, bytes.count) }
    if count != bytes.count { throw .invalidArgument }
  }

  /// The size in bytes of a node of the FUSE mount that this directory, open for reading, is in.
  /// - Parameter forceSync: whether the mount's daemon is asked; else it is what the kernel keeps.
  /// - Throws: EPERM without CAP_DAC_READ_SEARCH; ESTALE when the kernel does not know the node.
  public func size(ofNode node: UInt64, forceSync: Bool) throws(Errno) -> UInt64 {
    var size: UInt64 = 0
    _ = try checked { linux_fuse_size(rawValue, node, forceSync, &size) }
    return size
  }

  /// The number of the device that the open file is on; no network or FUSE server is asked.
  public func device() throws(Errno) -> UInt64 {
    var device: UInt64 = 0
    _ = try checked { linux_device(rawValue, &device) }
    return device
  }

  /// Reads everything from the beginning.
  /// - Parameter limit: when more bytes than these were read, that is enough.
  public func readAll(limit: Int = .max) throws(Errno) -> [UInt8] {
    try readContent(limit: limit) { chunk, offset throws(Errno) in try read(into: chunk, at: offset) }
  }

  /// Reads what is left, also of a pipe.
  /// - Throws: EFBIG for more than 256 MiB.
  public func readToEnd() throws(Errno) -> [UInt8] {
    var content: [UInt8] = []
    try withUnsafeTemporaryBytes(128 * 1024) { chunk throws(Errno) in
      while true {
        let count = try checked { Glibc.read(rawValue, chunk.baseAddress, chunk.count) }
        if count == 0 { return }
        content += chunk[..<count]
        if content.count > 256 << 20 { throw Errno(rawValue: EFBIG) }
      }
    }
    return content
  }

  /// Has a device or file system answer an ioctl(2) that reads.
  /// - Returns: as many bytes as asked for; those that were not answered are 0.
  public func ioctl(_ command: UInt32, size: Int) throws(Errno) -> [UInt8] {
    var answer = [UInt8](repeating: 0, count: size)
    _ = try checked { linux_ioctl(rawValue, UInt(command), &answer) }
    return answer
  }
}

/// Has the device or file system of an open file carry out an ioctl(2).
/// - Parameter argument: what the command takes; may be written to.
/// - Returns: what the command answers; not negative.
public func ioctl<Argument>(_ file: CInt, _ command: UInt32, _ argument: inout Argument) throws(Errno)
  -> CInt
{
  try withUnsafeMutablePointer(to: &argument) { argument throws(Errno) in
    try checked { linux_ioctl(file, UInt(command), argument) }
  }
}
