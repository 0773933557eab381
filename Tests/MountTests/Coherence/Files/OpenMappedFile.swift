import Glibc
import Posix
import TestSupport

/// An open and mapped file.
final class OpenMappedFile {
  enum ReadResult: Equatable, CustomStringConvertible {
    case content([UInt8])
    case stale
    case failed(Errno)

    var description: String {
      switch self {
      case .content(let content): "\(content.count) bytes, \(Set(content).sorted().prefix(5))"
      case .stale: "ESTALE"
      case .failed(let errno): errno.description
      }
    }
  }

  private let file: CInt
  private let map: UnsafeMutableRawPointer
  private let size: Int
  /// The file that the mapping is copied to: write(2) returns EFAULT where a load would raise SIGBUS.
  private let copy: CInt

  init(_ path: ByteString) throws {
    file = try path.call("open") { open($0, O_RDONLY | O_CLOEXEC) }
    size = Int(try ByteString.status(of: file).size)
    guard let map = mmap(nil, size, PROT_READ, MAP_SHARED, file, 0), map != MAP_FAILED else {
      throw DiskError("mmap", path, .current)
    }
    self.map = map
    var template = [CChar]("/tmp/bundlefs-tests-copy.XXXXXX".utf8CString)
    copy = mkstemp(&template)
    if copy < 0 { throw DiskError("mkstemp", "/tmp", .current) }
    unlink(template)
  }

  deinit {
    munmap(map, size)
    close(file)
    close(copy)
  }

  /// Reads the first bytes.
  func first(_ count: Int) -> ReadResult {
    lseek(file, 0, SEEK_SET)
    var content = [UInt8](repeating: 0, count: count)
    let readCount = read(file, &content, count)
    return readCount < 0 ? failure : .content([UInt8](content.prefix(readCount)))
  }

  /// Reads from the file offset to the end; returns the whole content.
  func rest() -> ReadResult {
    let offset = lseek(file, 0, SEEK_CUR)
    guard case .content(let before) = content(from: 0, to: offset) else { return .stale }
    guard case .content(let rest) = content(from: offset, to: .max) else { return .stale }
    return .content(before + rest)
  }

  /// Reads the whole content.
  func whole() -> ReadResult { content(from: 0, to: .max) }

  /// Copies the mapping or a part of it.
  func mapped(in range: Range<Int>? = nil) -> ReadResult {
    let range = range ?? 0..<size
    var offset = range.lowerBound
    while offset < range.upperBound {
      let count = pwrite(copy, map + offset, min(65536, range.upperBound - offset), off_t(offset))
      if count < 0 { return errno == EFAULT ? .stale : failure }
      offset += count
    }
    var content = [UInt8](repeating: 0, count: range.count)
    let count = pread(copy, &content, content.count, off_t(range.lowerBound))
    return .content([UInt8](content.prefix(max(0, count))))
  }

  private func content(from start: Int, to end: Int) -> ReadResult {
    var content: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65536)
    var offset = start
    while offset < end {
      let count = pread(file, &buffer, min(buffer.count, end - offset), off_t(offset))
      if count < 0 { return failure }
      if count == 0 { break }
      content += buffer[..<count]
      offset += count
    }
    lseek(file, offset, SEEK_SET)
    return .content(content)
  }

  private var failure: ReadResult { errno == ESTALE ? .stale : .failed(.current) }
}
