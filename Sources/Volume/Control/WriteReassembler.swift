import Fuse
import Glibc
import Posix
import Routing

/// The pieces in which the kernel hands over one write(2).
///
/// A piece ends with a page of the file where the kernel does not have the page in which it began, and where it
/// is as large as a request may be. Since the offset means nothing here, that is anywhere in a line: what is
/// there of the line waits for the next piece. The kernel keeps other writes to the file away meanwhile, so
/// that the next piece is the next write.
struct WriteReassembler {
  /// A line that may go on in the next piece.
  struct PartialLine {
    let writer: Caller
    let line: [UInt8]
    /// The offset at which the next piece would begin.
    let end: Int64
    /// From then on there is none: that write(2) ended with the page, and its line without a newline.
    let isWholeFrom: TimeSpec
  }

  enum Fragment: Equatable {
    /// It goes on with this line, which is empty for a new write(2).
    case follows([UInt8])
    /// It is the rest of a line that was refused, written again.
    case refused(RoutingError)
  }

  private static let page = Int64(sysconf(CInt(_SC_PAGESIZE)))
  private var begun: PartialLine?
  private var refused: (thread: Int32, rest: [UInt8], error: RoutingError)?

  /// Takes a piece.
  /// - Returns: what it is; and a line that was whole after all, and comes first.
  mutating func take(
    _ bytes: UnsafeRawBufferPointer, at offset: Int64, _ writer: Caller
  ) -> (Fragment, before: PartialLine?) {
    defer { (begun, refused) = (nil, nil) }
    if let begun, begun.writer == writer, begun.end == offset { return (.follows(begun.line), nil) }
    if let refused, refused.thread == writer.thread, bytes.starts(with: refused.rest) {
      return (.refused(refused.error), begun)
    }
    return (.follows([]), begun)
  }

  /// Keeps the line with which a piece ends, if it may go on.
  /// - Returns: false if it is whole.
  mutating func keep(_ line: ArraySlice<UInt8>, until end: Int64, _ writer: Caller) -> Bool {
    guard line.last != UInt8(ascii: "\n"), end % Self.page == 0, line.count <= RouteURL.maxLength else {
      return false
    }
    let now = TimeSpec.monotonic
    begun = PartialLine(
      writer: writer, line: Array(line), end: end,
      isWholeFrom: TimeSpec(seconds: now.seconds + 1, nanoseconds: now.nanoseconds))
    return true
  }

  /// Notes that a line was refused whose beginning the writer believes done. Who is told that a part was
  /// written writes the rest again, and is then told the error.
  mutating func refuse(_ rest: ArraySlice<UInt8>, _ writer: Caller, _ error: RoutingError) {
    refused = (writer.thread, Array(rest), error)
  }

  /// Whether the kernel has lost a part of a line that ends at an offset. Where somebody learns of the file's
  /// size just as another appends to it, it may wipe the page from that size on before the bytes come here.
  static func wasZeroed(_ line: ArraySlice<UInt8>, until end: Int64) -> Bool {
    guard let start = line.firstIndex(of: 0) else { return false }
    let left = page - (end - Int64(line.endIndex - start)) % page
    return line[start...].prefix(Int(left)).allSatisfy { $0 == 0 }
  }

  /// Takes the line that is whole after all, once that can be known: somebody looks at the file who would
  /// still be writing, or does so much later.
  mutating func takeCompletedLine(_ caller: Caller) -> PartialLine? {
    guard let begun, begun.writer.thread == caller.thread || TimeSpec.monotonic >= begun.isWholeFrom else {
      return nil
    }
    self.begun = nil
    return begun
  }
}
