import Glibc
import Posix

/// Writes URLs to a control file and reads their results, sequentially through one descriptor.
struct RouteTrips {
  private let file: CInt
  private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 4096, alignment: 16)
  /// The file's size at the last read.
  private var end = 0
  private var number = 0

  private static let tripsInRound = 2000

  init(_ path: String) throws(Failure) {
    file = open(path, O_RDWR)
    guard file >= 0 else { throw Failure(refused: path) }
    try write("route Bench bench://i:Number\n")
  }

  /// Nanoseconds of a write of a comment, of a URL, and of a URL with a read of its result.
  mutating func round() throws(Failure) -> (comment: Int, post: Int, trip: Int) {
    let start = now()
    for number in 0..<Self.tripsInRound { try write("# bench://\(number)\n") }
    let comments = now()
    for number in 0..<Self.tripsInRound { try write("bench://\(number)\n") }
    let posts = now()
    // Finding the end of the file is not measured.
    end = Int(lseek(file, 0, SEEK_END))
    let read = now()
    for _ in 0..<Self.tripsInRound { try trip() }
    let trips = now()
    return (
      (comments - start) / Self.tripsInRound, (posts - comments) / Self.tripsInRound,
      (trips - read) / Self.tripsInRound
    )
  }

  private mutating func trip() throws(Failure) {
    number += 1
    try write("bench://\(number)\n")
    let offset = max(0, end - 1000)
    let count = pread(file, buffer.baseAddress, buffer.count, off_t(offset))
    guard count > 0 else { throw Failure(refused: "pread") }
    end = offset + count
    let text = String(decoding: buffer[..<count], as: UTF8.self)
    guard text.hasSuffix("\"userInfo\":{\"Number\":\(number)},\"scheme\":\"bench\",\"listeners\":0}\n") else {
      throw Failure("after URL \(number) the file ends with \(text.suffix(200))")
    }
  }

  private func write(_ line: String) throws(Failure) {
    var line = line
    let count = line.withUTF8 { pwrite(file, $0.baseAddress, $0.count, 0) }
    guard count == line.utf8.count else { throw Failure(refused: line) }
  }
}
