import Glibc
import Posix
import Routing

/// Reads lines from a file as they arrive.
struct InputLines {
  /// Longer than every line that the control file takes, so that the daemon refuses a longer one.
  private static let maxLength = 2 * RouteURL.maxLength

  private let file: CInt
  private var rest: [UInt8] = []
  private var isAtEnd = false

  init(_ file: CInt) { self.file = file }

  /// The lines that the next read(2) completes, without LF or CR LF; nil at the end of the file.
  /// - Throws: the errors of read(2); EMSGSIZE for a line that is too long to be sent.
  mutating func next() throws(Errno) -> [[UInt8]]? {
    if isAtEnd { return nil }
    let start = rest.count
    let count = try withUnsafeTemporaryBytes(64 << 10) { buffer throws(Errno) in
      let count = read(file, buffer.baseAddress, buffer.count)
      if count < 0 { throw .current }
      rest += buffer[..<count]
      return count
    }
    isAtEnd = count == 0
    var lines: [[UInt8]] = []
    var begin = 0
    for index in start..<rest.count where rest[index] == UInt8(ascii: "\n") {
      lines.append(rest[begin..<index].withoutReturn)
      begin = index + 1
    }
    rest.removeFirst(begin)
    if isAtEnd, !rest.isEmpty { lines.append(rest[...].withoutReturn) }
    if rest.count > Self.maxLength { throw Errno(rawValue: EMSGSIZE) }
    return lines
  }
}

extension ArraySlice<UInt8> {
  /// A line without the CR of CR LF.
  var withoutReturn: [UInt8] { Array(last == UInt8(ascii: "\r") ? dropLast() : self) }
}
