import Fuse
import Glibc
import Posix
import Routing

/// Joins the pieces of lines: the FUSE WRITE requests into which the kernel splits one write(2), and the writes into
/// which a program's output buffer splits a line.
///
/// The kernel splits at the end of a page if it did not have the write's first page cached, and at the maximum
/// request size. It holds the inode's lock across all fragments, so the next WRITE request is the next fragment, if
/// there is one. Offsets are meaningless in the control file, so a split may fall anywhere in a line; the incomplete
/// line is held for the next fragment.
///
/// A full buffer is written as it is, and its last line continues in the program's next write. Nothing says that it
/// does, so a line without a newline is held where a buffer may have been full.
struct WriteReassembler {
  /// An incomplete line that the next WRITE may continue.
  struct PartialLine {
    /// Its number; no other line has it.
    let id: UInt64
    /// The thread, or the process if a full buffer may have ended here: any thread of it may continue the line.
    let writer: Caller
    let line: [UInt8]
    /// The offset at which the next WRITE would begin.
    let end: Int64
    /// Whether a full buffer may have ended here, and not only a fragment of a write(2).
    let isBuffer: Bool
    /// Whether the kernel may have split the write(2) here, since the WRITE was as large as it can be.
    let isSplit: Bool
    /// The time after which no fragment can follow: the write(2) ended at the page boundary, without a newline.
    let deadline: TimeSpec
  }

  /// A WRITE among the pieces of lines.
  struct Piece {
    enum Kind: Equatable {
      /// It continues this line, which is empty if it begins a line.
      case continues([UInt8])
      /// It repeats the rest of a line that was rejected.
      case retries(RoutingError)
    }

    let kind: Kind
    /// Held lines that it proves to be complete, to be executed first.
    var completed: [PartialLine]
    /// The bytes of its write(2) up to its end.
    let sizeOfWrite: Int
  }

  /// How many programs may each have an incomplete line.
  static let capacity = 64
  /// The bytes of the largest WRITE: 256 pages.
  private static let largestWrite = 256 * Int(pageSize)
  private static let pageSize = Int64(sysconf(CInt(_SC_PAGESIZE)))

  private var partials: [PartialLine] = []
  private var nextID: UInt64 = 1
  private var rejected: (thread: Int32, rest: [UInt8], error: RoutingError)?
  /// The last WRITE, as far as it matters to its next fragment.
  private var last: (thread: Int32, end: Int64, size: Int)?

  /// Whether there are lines that only the end of their writer may show to be complete.
  var holdsBuffers: Bool { partials.contains(where: \.isBuffer) }

  /// - Parameter appends: whether the file is open with O_APPEND, so that the offset is the file's size.
  mutating func take(
    _ bytes: UnsafeRawBufferPointer, at offset: Int64, appends: Bool, _ writer: Caller
  ) -> Piece {
    let size = bytes.count + sizeOfFragments(before: offset, writer)
    last = (writer.thread, offset &+ Int64(bytes.count), size)
    defer { rejected = nil }
    var completed: [PartialLine] = []
    var line: [UInt8] = []
    for partial in partials where !partial.isBuffer || partial.isOf(writer) {
      // At most one is this program's, since it is taken with the program's next WRITE.
      if partial.continues(at: offset, appends: appends, writer) {
        line = partial.line
      } else {
        completed.append(partial)
      }
    }
    partials.removeAll { !$0.isBuffer || $0.isOf(writer) }
    if line.isEmpty, let rejected, rejected.thread == writer.thread, bytes.starts(with: rejected.rest) {
      return Piece(kind: .retries(rejected.error), completed: completed, sizeOfWrite: size)
    }
    return Piece(kind: .continues(line), completed: completed, sizeOfWrite: size)
  }

  private func sizeOfFragments(before offset: Int64, _ writer: Caller) -> Int {
    guard let last, last.thread == writer.thread, last.end == offset, offset % Self.pageSize == 0 else {
      return 0
    }
    return last.size
  }

  enum Hold: Equatable {
    case complete, fragment, buffer
    /// Too many lines are held.
    case full
  }

  /// Holds the last line of a WRITE if the next one may continue it.
  /// - Parameters:
  ///   - size: the bytes of the WRITE.
  ///   - sizeOfWrite: those of its write(2) up to its end.
  mutating func hold(
    _ line: ArraySlice<UInt8>, endingAt end: Int64, size: Int, sizeOfWrite: Int, _ writer: Caller
  ) -> Hold {
    guard line.last != UInt8(ascii: "\n"), line.count <= RouteURL.maxLength else { return .complete }
    let isBuffer = Self.isBuffer(size) || Self.isBuffer(sizeOfWrite)
    // An end at a multiple of 512 says less than a buffer's size: the line can end a buffer that began with another WRITE.
    guard isBuffer || end % 512 == 0 else { return .complete }
    if partials.count >= Self.capacity { return .full }
    partials.append(
      PartialLine(
        id: nextID, writer: isBuffer ? writer.process : writer, line: Array(line), end: end,
        isBuffer: isBuffer, isSplit: size >= Self.largestWrite,
        deadline: TimeSpec.monotonic.advanced(byMilliseconds: 1000)))
    nextID += 1
    return isBuffer ? .buffer : .fragment
  }

  // MARK: - Records

  init() {}

  /// Takes over the lines that a predecessor held.
  init(_ encoded: [UInt8]) {
    var reader = ByteReader(encoded)
    while let line = PartialLine(from: &reader) {
      partials.append(line)
      nextID = max(nextID, line.id + 1)
    }
  }

  /// The lines that are held.
  var encoded: [UInt8] { partials.flatMap(\.encoded) }

  /// Whether a program's buffer may have this size: a multiple of 512, or 2,038, which is tcsh's.
  private static func isBuffer(_ size: Int) -> Bool { size % 512 == 0 || size == 2038 }

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

  /// Takes a held fragment if it is complete: its writer makes another request, or the deadline has passed.
  mutating func takeCompletedFragment(_ caller: Caller) -> PartialLine? {
    let index = partials.firstIndex {
      !$0.isBuffer && ($0.writer.thread == caller.thread || TimeSpec.monotonic >= $0.deadline)
    }
    return index.map { partials.remove(at: $0) }
  }

  /// The writers of lines for whose rest nothing but time can wait.
  var buffering: [Caller] { partials.filter(\.isBuffer).map(\.writer) }

  /// Takes the line that a writer has left, which nothing will continue.
  mutating func takeBuffer(of writer: Caller) -> PartialLine? {
    partials.firstIndex { $0.isBuffer && $0.writer == writer }.map { partials.remove(at: $0) }
  }
}

extension WriteReassembler.PartialLine {
  /// Whether it was written by this process; a program may write from several threads.
  func isOf(_ other: Caller) -> Bool {
    writer == other || writer.user == other.user && writer.isInProcess(of: other)
  }

  /// Whether a WRITE by a process that `isOf` finds, or by any if this is a fragment, continues this line.
  fileprivate func continues(at offset: Int64, appends: Bool, _ other: Caller) -> Bool {
    isBuffer ? end == offset || appends : end == offset && writer == other
  }
}
