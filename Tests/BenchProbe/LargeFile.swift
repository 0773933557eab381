import Glibc
import Posix

/// How a program reads a large file.
enum LargeAccess: String {
  /// From the start to the end, a MiB at a time; the cost is that of a MiB.
  case sequential
  /// The same through a mapping, of which a byte of each page is touched.
  case mapped
  /// 4 KiB here and there; the cost is that of one such read.
  case random

  private static let megabyte = 1 << 20
  private static let page = 4096
  private static let randomReads = 20_000

  func cost(of path: String) throws(Failure) -> Cost {
    let file = open(path, O_RDONLY)
    guard file >= 0 else { throw Failure(refused: path) }
    defer { close(file) }
    let size = Int(lseek(file, 0, SEEK_END))
    guard size >= Self.megabyte, lseek(file, 0, SEEK_SET) == 0 else { throw Failure("\(path): not large") }
    return try Cost { () throws(Failure) in
      switch self {
      case .sequential: try Self.readThrough(file, size)
      case .mapped: try Self.touchPages(file, size)
      case .random: try Self.readHereAndThere(file, size)
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
    for place in stride(from: 0, to: size, by: page) {
      sum += Int(base.load(fromByteOffset: place, as: UInt8.self))
    }
    // Every page of the corpus begins with the same byte that is not 0: one that was not read would show.
    guard sum == size / page * Int(Trees.firstByte) else { throw Failure("the mapping has other content") }
    return size / megabyte
  }

  private static func readHereAndThere(_ file: CInt, _ size: Int) throws(Failure) -> Int {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: page, alignment: page)
    defer { buffer.deallocate() }
    // A fixed sequence (Lehmer's): everyone reads the same places.
    var state: UInt64 = 20_260_101
    for _ in 0..<randomReads {
      state = state * 48_271 % 2_147_483_647
      let place = Int(state) % (size / page) * page
      guard pread(file, buffer.baseAddress, page, off_t(place)) == page, buffer[0] == Trees.firstByte else {
        throw Failure(refused: "pread at \(place)")
      }
    }
    return randomReads
  }
}
