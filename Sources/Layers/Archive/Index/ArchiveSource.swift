import CLibrary
import Posix
import RemoteFiles

/// An archive's open file, which stays readable after its name was replaced.
final class ArchiveSource: Sendable {
  /// Of the file; of an archive on a server, of the file that has its cached blocks.
  let descriptor: Descriptor
  /// nil for a file of this machine.
  private let remote: RemoteObject?
  /// The file's status when it was opened.
  let attributes: FileStatus
  /// Counts the states of the archive that were loaded.
  let generation: UInt32

  /// Where a successor finds it; removed before the descriptor is closed.
  let registration = Locked<ArchiveRegistration?>(nil)
  /// Keeps the registration of the file that this archive is a part of.
  private let outer: ArchiveSource?

  private let reloadDeadline = Locked<TimeSpec?>(nil)

  /// The deadline by `TimeSpec.monotonic` for reads that find the file overwritten and wait for a reload:
  /// one second after the first of them.
  var deadline: TimeSpec {
    reloadDeadline.withLock { deadline in
      let present = deadline ?? .monotonic.advanced(byMilliseconds: 1000)
      deadline = present
      return present
    }
  }

  deinit { registration.withLock { $0 = nil } }

  /// Ends the wait: the overwritten file cannot be loaded.
  func expireDeadline() { reloadDeadline.withLock { $0 = TimeSpec(seconds: 0, nanoseconds: 0) } }

  /// Where the archive is in the file: all of it, unless the archive is stored in another one.
  private let range: Range<UInt64>

  var size: UInt64 { UInt64(range.count) }

  /// Whether this machine's kernel alone has the file: neither a server nor another process.
  var isLocalFile: Bool {
    remote == nil && ((try? descriptor.fileSystemType()).map { !FileSystemType.isRemote($0) } ?? false)
  }

  init(_ descriptor: consuming Descriptor, generation: UInt32 = 0) throws(ArchiveError) {
    do throws(Errno) { attributes = try Self.settledAttributes(of: descriptor) } catch {
      throw .unreadable(error)
    }
    guard attributes.isRegular else { throw attributes.isDirectory ? .folder : .noFile }
    range = 0..<attributes.size
    (outer, remote) = (nil, nil)
    self.descriptor = descriptor
    self.generation = generation
  }

  /// A state of an archive on a server.
  init(_ remote: RemoteObject, generation: UInt32 = 0) throws(ArchiveError) {
    descriptor = try Self.duplicate(of: remote.descriptor)
    attributes = remote.attributes
    range = 0..<remote.size
    (self.remote, self.generation, outer) = (remote, generation, nil)
  }

  /// An archive that is stored in another file, from an offset on.
  /// - Parameter keepsOuter: whether it is all that is used of the other one, whose registration it keeps.
  init(
    inside outer: ArchiveSource, at start: UInt64, size: UInt64, keepsOuter: Bool = false
  ) throws(ArchiveError) {
    guard start <= outer.size, size <= outer.size - start else { throw .noArchive }
    descriptor = try Self.duplicate(of: outer.descriptor.rawValue)
    remote = outer.remote
    (attributes, generation) = (outer.attributes, outer.generation)
    self.outer = keepsOuter ? outer : nil
    range = outer.range.lowerBound + start..<outer.range.lowerBound + start + size
  }

  /// The status after the clock of mtimes has ticked since the last write, so that a later write changes the mtime: a
  /// tick of 4 ms is common.
  private static func settledAttributes(of descriptor: borrowing Descriptor) throws(Errno) -> FileStatus {
    var attributes = try descriptor.attributes()
    for _ in 0..<50 {
      var now = timespec()
      clock_gettime(CLOCK_REALTIME_COARSE, &now)
      // Of a time in the future nothing is known.
      if Int64(now.tv_sec) != attributes.modified.seconds
        || now.tv_nsec > Int(attributes.modified.nanoseconds)
      {
        break
      }
      usleep(1000)
      attributes = try descriptor.attributes()
    }
    return attributes
  }

  convenience init(path: [UInt8], generation: UInt32 = 0) throws(ArchiveError) {
    let opened: SharedDescriptor
    do throws(Errno) {
      opened = try withCName(path) { name throws(Errno) in
        SharedDescriptor(try Descriptor.open(name, [.read, .nonBlocking, .noControllingTerminal]))
      }
    } catch { throw .unreadable(error) }
    try self.init(copy: opened, generation: generation)
  }

  /// Duplicates the descriptor.
  convenience init(copy handle: SharedDescriptor, generation: UInt32 = 0) throws(ArchiveError) {
    try self.init(Self.duplicate(of: handle.descriptor.rawValue), generation: generation)
  }

  private static func duplicate(of file: CInt) throws(ArchiveError) -> Descriptor {
    do throws(Errno) { return try Descriptor.duplicate(of: file) } catch {
      throw .unreadable(error)
    }
  }

  /// Whether the file was not modified since it was opened. Added and removed names do not count. What is read of a state
  /// on a server is of that state in any case.
  var isUnchanged: Bool {
    if let remote { return !remote.hasChanged }
    guard let now = try? descriptor.attributes() else { return false }
    return now.identity == attributes.identity && now.size == attributes.size
      && now.modified == attributes.modified
  }

  /// - Throws: EIO if the archive ends before.
  func read(into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64) throws(Errno) {
    guard offset <= size, buffer.count <= size - offset else { throw .ioError }
    if let remote { return try remote.read(into: buffer, at: range.lowerBound + offset) }
    guard try descriptor.read(into: buffer, at: Int64(range.lowerBound + offset)) == buffer.count else {
      throw .ioError
    }
  }

  /// Has a server send what is not cached of a range, so that `read` does not wait for it with a lock held.
  /// - Parameters:
  ///   - offset: where the range begins.
  ///   - count: bytes; those beyond the archive are left out.
  func prepare(at offset: UInt64, count: UInt64) {
    guard let remote, offset < size else { return }
    let start = range.lowerBound + offset
    remote.prepare(start..<start + min(count, size - offset))
  }
}
