import Glibc
import Posix

/// A way to read a large file.
enum LargeAccess: String {
  /// Sequential reads of 1 MiB; the cost is per MiB.
  case sequential
  /// Loads of one byte per page through a mapping; the cost is per MiB.
  case mapped
  /// Random reads of 4 KiB; the cost is per read.
  case random

  private static let megabyte = 1 << 20
  private static let page = 4096
  private static let randomReads = 20_000

  func cost(of path: String) throws(Failure) -> Cost {
    let file = open(path, O_RDONLY)
    guard file >= 0 else { throw Failure(refused: path) }
    defer { close(file) }
    let size = Int(lseek(file, 0, SEEK_END))
    guard size >= Self.megabyte, lseek(file, 0, SEEK_SET) == 0 else {
      throw Failure("\(path): smaller than 1 MiB")
    }
    return try Cost { () throws(Failure) in
      switch self {
      case .sequential: try Self.readThrough(file, size)
      case .mapped: try Self.touchPages(file, size)
      case .random: try Self.readRandomly(file, size)
      }
    }
  }

  private static func readThrough(_ file: CInt, _ size: Int) throws(Failure) -> Int {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: megabyte, alignment: page)
    defer { buffer.deallocate() }
    var total = 0
    while true {
      let count = read(file, buffer.baseAddress, buffer.count)
      if count < 0 { throw Failure(refused: "read") }
      if count == 0 { break }
      total += count
    }
    guard total == size else { throw Failure("\(total) bytes were read of \(size)") }
    return size / megabyte
  }

  private static func touchPages(_ file: CInt, _ size: Int) throws(Failure) -> Int {
    guard let base = mmap(nil, size, PROT_READ, MAP_PRIVATE, file, 0), base != MAP_FAILED else {
      throw Failure(refused: "mmap")
    }
    defer { munmap(base, size) }
    var sum = 0
    for offset in stride(from: 0, to: size, by: page) {
      sum += Int(base.load(fromByteOffset: offset, as: UInt8.self))
    }
    // Every page begins with the same non-zero byte, so that a missing page changes the sum.
    guard sum == size / page * Int(Trees.firstByte) else {
      throw Failure("the mapping has unexpected content")
    }
    return size / megabyte
  }

  private static func readRandomly(_ file: CInt, _ size: Int) throws(Failure) -> Int {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: page, alignment: page)
    defer { buffer.deallocate() }
    // A fixed Lehmer sequence, so that all runs read the same offsets.
    var state: UInt64 = 20_260_101
    for _ in 0..<randomReads {
      state = state * 48_271 % 2_147_483_647
      let offset = Int(state) % (size / page) * page
      guard pread(file, buffer.baseAddress, page, off_t(offset)) == page, buffer[0] == Trees.firstByte else {
        throw Failure(refused: "pread at \(offset)")
      }
    }
    return randomReads
  }
}
