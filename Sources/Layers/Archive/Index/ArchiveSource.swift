import Glibc
import Posix

/// An archive's file, held open: it can be read on when another one has taken its name.
final class ArchiveSource: Sendable {
  let descriptor: Descriptor
  /// As the file was when it was opened.
  let attributes: FileStatus

  private let reloadDeadline = Locked<TimeSpec?>(nil)

  /// Until when those who find the file written over wait for it to be read anew: a second from the first who
  /// asks, by `TimeSpec.monotonic`.
  var deadline: TimeSpec {
    reloadDeadline.withLock { deadline in
      let answer = deadline ?? .monotonic.advanced(byMilliseconds: 1000)
      deadline = answer
      return answer
    }
  }

  /// Notes that there is nothing to wait for: what the file has become cannot be read.
  func expireDeadline() { reloadDeadline.withLock { $0 = TimeSpec(seconds: 0, nanoseconds: 0) } }

  /// Bytes in the file.
  var size: UInt64 { attributes.size }

  init(_ descriptor: consuming Descriptor) throws(ArchiveError) {
    do throws(Errno) { attributes = try descriptor.attributes() } catch { throw .unreadable(error) }
    guard attributes.isRegular else { throw .noFile }
    self.descriptor = descriptor
  }

  /// Opens an archive.
  convenience init(path: [UInt8]) throws(ArchiveError) {
    let opened: SharedDescriptor
    do throws(Errno) {
      opened = try withCName(path) { name throws(Errno) in
        SharedDescriptor(try Descriptor.open(name, [.read, .nonBlocking, .noControllingTerminal]))
      }
    } catch { throw .unreadable(error) }
    try self.init(copy: opened)
  }

  /// Opens an archive once more.
  convenience init(copy handle: SharedDescriptor) throws(ArchiveError) {
    let number = fcntl(handle.descriptor.rawValue, F_DUPFD_CLOEXEC, 0)
    if number < 0 { throw .unreadable(.current) }
    try self.init(Descriptor(owning: number))
  }

  /// Whether the file's content is what it was when it was opened. A new name, or the loss of one, does not
  /// count.
  var isUnchanged: Bool {
    guard let now = try? descriptor.attributes() else { return false }
    return isSame(as: now)
  }

  /// Whether attributes are those of the same file with the same content.
  func isSame(as other: FileStatus) -> Bool {
    other.identity == attributes.identity && other.size == attributes.size
      && other.modified == attributes.modified
  }

  /// Reads exactly as many bytes as the buffer has.
  /// - Throws: EIO where the file ends before.
  func read(into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64) throws(Errno) {
    guard offset <= UInt64(Int64.max), try descriptor.read(into: buffer, at: Int64(offset)) == buffer.count
    else { throw .ioError }
  }
}
