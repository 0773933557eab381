import CFuse
import Glibc

/// The memory into which a worker reads requests.
///
/// Its pages are there before the first request is read. The kernel answers a request with EIO if the reading thread is
/// killed while a page is still missing. Where none is, it copies the request without looking for signals, and a successor
/// gets what the killed worker has not answered.
enum RequestMemory {
  /// The size that libfuse gives the memory: the largest request, 256 pages, and its header.
  private static let size = 256 * Int(getpagesize()) + 4096
  /// What requests of a mount need that takes no changes: URLs and commands.
  private static let small = 64 << 10

  /// Memory for a worker, to be freed with free(3).
  /// - Parameter takesWrites: whether requests are as large as programs write.
  static func allocate(takesWrites: Bool) -> fuse_buf {
    var buffer = fuse_buf()
    // Later versions choose the size themselves.
    guard fuse_version() < 317, let memory = malloc(size) else { return buffer }
    let bytes = memory.assumingMemoryBound(to: UInt8.self)
    for offset in stride(from: 0, to: takesWrites ? size : small, by: Int(getpagesize())) {
      bytes[offset] = 0
    }
    bytes[size - 1] = 0
    buffer.mem = memory
    return buffer
  }
}
