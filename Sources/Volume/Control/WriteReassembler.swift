import Fuse
import Glibc
import Posix
import Routing

/// Joins the FUSE WRITE requests into which the kernel splits one write(2).
///
/// The kernel splits at the end of a page if it did not have the write's first page cached, and at the maximum
/// request size. Offsets are meaningless in the control file, so a split may fall anywhere in a line; the
/// incomplete line is held for the next fragment. The kernel holds the inode's lock across all fragments, so
/// the next WRITE request is the next fragment, if there is one.
struct WriteReassembler {
  /// An incomplete line that the next fragment may continue.
  struct PartialLine {
    let writer: Caller
    let line: [UInt8]
    /// The offset at which the next fragment would begin.
    let end: Int64
    /// The time after which no fragment can follow: the write(2) ended at the page boundary, without a newline.
    let deadline: TimeSpec
  }

  enum Fragment: Equatable {
    /// It continues this line, which is empty if the fragment begins a new write(2).
    case continues([UInt8])
    /// It repeats the rest of a line that was rejected.
    case retries(RoutingError)
  }

  private static let pageSize = Int64(sysconf(CInt(_SC_PAGESIZE)))
  private var partial: PartialLine?
  private var rejected: (thread: Int32, rest: [UInt8], error: RoutingError)?

  /// - Returns: the fragment's kind, and a held line that it proves to be complete, to be executed first.
  mutating func take(
    _ bytes: UnsafeRawBufferPointer, at offset: Int64, _ writer: Caller
  ) -> (Fragment, before: PartialLine?) {
    defer { (partial, rejected) = (nil, nil) }
    if let partial, partial.writer == writer, partial.end == offset { return (.continues(partial.line), nil) }
    if let rejected, rejected.thread == writer.thread, bytes.starts(with: rejected.rest) {
      return (.retries(rejected.error), partial)
    }
    return (.continues([]), partial)
  }

  /// Holds the last line of a fragment if the next one may continue it; false if the line is complete.
  mutating func hold(_ line: ArraySlice<UInt8>, endingAt end: Int64, _ writer: Caller) -> Bool {
    guard line.last != UInt8(ascii: "\n"), end % Self.pageSize == 0, line.count <= RouteURL.maxLength else {
      return false
    }
    partial = PartialLine(
      writer: writer, line: Array(line), end: end, deadline: TimeSpec.monotonic.advanced(byMilliseconds: 1000)
    )
    return true
  }

  /// Records that a line was rejected whose beginning was already reported as written. A caller that gets a
  /// short count writes the rest again; that retry then fails with the error.
  mutating func recordRejection(of rest: ArraySlice<UInt8>, _ writer: Caller, _ error: RoutingError) {
    rejected = (writer.thread, Array(rest), error)
  }

  /// Whether the kernel zeroed a part of a line that ends at an offset: an attribute reply that arrives during
  /// an append may make it clear the page beyond the reported size before it sends the bytes.
  static func wasZeroed(_ line: ArraySlice<UInt8>, endingAt end: Int64) -> Bool {
    guard let start = line.firstIndex(of: 0) else { return false }
    let restOfPage = pageSize - (end &- Int64(line.endIndex - start)) % pageSize
    return line[start...].prefix(Int(restOfPage)).allSatisfy { $0 == 0 }
  }

  /// Takes the held line if it is complete: its writer makes another request, or the deadline has passed.
  mutating func takeCompletedLine(_ caller: Caller) -> PartialLine? {
    guard let partial, partial.writer.thread == caller.thread || TimeSpec.monotonic >= partial.deadline else {
      return nil
    }
    self.partial = nil
    return partial
  }
}
