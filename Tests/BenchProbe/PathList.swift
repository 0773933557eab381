import Glibc
import Posix

/// C paths, prepared before the measurement.
final class PathList {
  private let bytes: UnsafeMutableRawBufferPointer
  let paths: [CName]

  /// Reads a file of paths, each terminated by NUL.
  init(file: String) throws(Failure) {
    let descriptor = open(file, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw Failure(refused: file) }
    defer { close(descriptor) }
    let size = Int(lseek(descriptor, 0, SEEK_END))
    guard size > 0 else { throw Failure("\(file): empty") }
    let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: size, alignment: 16)
    self.bytes = bytes
    guard pread(descriptor, bytes.baseAddress, size, 0) == size, bytes[size - 1] == 0 else {
      throw Failure("\(file): incomplete")
    }
    var paths: [CName] = []
    var start = 0
    while start < size, let base = bytes.baseAddress {
      let path = UnsafeRawPointer(base + start).assumingMemoryBound(to: CChar.self)
      paths.append(path)
      start += strlen(path) + 1
    }
    self.paths = paths
  }

  deinit { bytes.deallocate() }
}
