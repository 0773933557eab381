import Fuse
import Glibc
import Posix
import Routing

/// What the user chose for the control file.
public struct ControlOptions: Sendable {
  /// Its name in the mount's root.
  public var name = Array(".routes".utf8)
  /// Its permissions; the low nine bits count.
  public var mode: UInt32 = 0o600
  /// Whether listings leave it out.
  public var isHidden = false
  /// The routes that are there at first.
  public var routes = RouteTable()

  /// The defaults.
  public init() {}
}

/// The control file in the mount's root: URLs and commands are written to it, a line each, and it reads as the
/// registered routes and the last results (design, section 5).
final class ControlFile: Sendable {
  /// A number that no node of the table has.
  static let node = NodeID(rawValue: 1 << 63 | 2)
  /// Below the numbers that files get.
  static let inodeNumber: UInt64 = 2

  let name: [UInt8]
  let isHidden: Bool
  private let mode: UInt32
  private let content: Locked<ControlContent>
  private let readers = PollSubscribers()
  private let news: ResultNotifier
  private let pieces = Locked(WriteReassembler())
  /// Until when whoever polls is told to go.
  private let disconnectDeadline = Locked<TimeSpec?>(nil)

  init(_ options: ControlOptions) throws(Errno) {
    name = options.name
    isHidden = options.isHidden
    mode = options.mode & 0o777
    content = Locked(ControlContent(options.routes))
    let readers = readers
    news = try ResultNotifier { readers.wake() }
  }

  /// Starts its thread.
  func start() throws(Errno) { try news.start() }

  /// Ends its thread.
  func stop() { news.stop() }

  /// Whether a name of the root is this file's.
  func isNamed(_ other: CName) -> Bool {
    name.withUnsafeBytes {
      strlen(other) == $0.count && memcmp(other, $0.baseAddress.unsafelyUnwrapped, $0.count) == 0
    }
  }

  /// Whether somebody may change routes and use what is built in.
  func isOwner(_ caller: Caller) -> Bool { caller.user == getuid() || caller.user == 0 }

  /// Its attributes, which the kernel may not keep.
  var attributes: NodeAttributes {
    let (size, modified) = content.withLock { ($0.size, $0.modified) }
    return NodeAttributes(
      FileStatus(
        regularFile: mode, owner: getuid(), group: getgid(), size: UInt64(size), modified: modified),
      inodeNumber: Self.inodeNumber, timeout: 0)
  }

  /// Its attributes for somebody who will, if it was reported to him that there is news, read them now.
  func attributes(for caller: Caller) -> NodeAttributes {
    readers.recordRead(by: caller, upTo: news.latest)
    return attributes
  }

  /// A part of what it reads as.
  func read(at offset: Int64, size: Int) -> ArraySlice<UInt8> {
    let text = content.withLock { $0.text }
    let start = Int(clamping: offset)
    return start < text.count ? text[start..<min(text.count, start + size)] : []
  }

  /// LSEEK: all of it is data, up to its end.
  func seek(_ offset: Int64, whence: CInt, _ reply: consuming Reply<ReplyKind.Offset>) {
    let size = Int64(content.withLock { $0.size })
    if offset < 0 || offset >= size {
      reply.fail(.noSuchAddressOrDevice)
    } else {
      reply.send(whence == Descriptor.seekHole ? size : offset)
    }
  }

  /// How many routes there are, and how many results there have been.
  var counts: (routes: Int, results: UInt64) { content.withLock { ($0.table.count, $0.sequence) } }

  /// What is there for somebody who polls.
  func events(_ handle: PollHandle?, _ caller: Caller) -> CInt {
    // Who is about to wait must not miss what comes now: he is noted before the latest result is looked up.
    readers.register(handle, caller)
    if let deadline = disconnectDeadline.withLock({ $0 }), TimeSpec.monotonic < deadline {
      return POLLHUP | writable
    }
    return readers.hasUndeliveredResult(handle, caller, news.latest)
      ? POLLIN | POLLRDNORM | POLLPRI | writable : writable
  }

  /// Tells whoever waits for results to go, for two seconds: an open file keeps the mount from being unmounted.
  func disconnectListeners() {
    disconnectDeadline.withLock { $0 = TimeSpec.monotonic.advanced(byMilliseconds: 2000) }
    readers.wake()
  }

  private var writable: CInt { POLLOUT | POLLWRNORM }

  /// Takes what is written, and says what it goes on with.
  func take(
    _ bytes: UnsafeRawBufferPointer, at offset: Int64, _ writer: Caller
  ) -> (WriteReassembler.Fragment, before: WriteReassembler.PartialLine?) {
    // The kernel has the bytes in its pages of the file. Even if nothing comes of them, it must drop these.
    content.withLock { $0.touch() }
    return pieces.withLock { $0.take(bytes, at: offset, writer) }
  }

  /// Whether a line at the end of what was written is kept, since it may go on in the next piece.
  func keeps(_ line: ArraySlice<UInt8>, until end: Int64, _ writer: Caller) -> Bool {
    pieces.withLock { $0.hold(line, endingAt: end, writer) }
  }

  /// Notes that a line was refused of which an earlier piece brought the beginning.
  func refused(_ rest: ArraySlice<UInt8>, _ writer: Caller, _ error: RoutingError) {
    pieces.withLock { $0.recordRejection(of: rest, writer, error) }
  }

  /// The line that was kept for a next piece, if it is known now that there is none.
  func takeCompletedLine(_ caller: Caller) -> WriteReassembler.PartialLine? {
    pieces.withLock { $0.takeCompletedLine(caller) }
  }

  /// Notes that a write was answered, so that those who wait may be told of its results.
  func wasAnswered() { news.repliesSent(upTo: content.withLock { $0.sequence }) }

  /// Changes the content and notes a result.
  /// - Parameter body: what becomes of a line, with the routes.
  /// - Returns: why the line was refused; nil if it was not.
  func note(
    _ line: [UInt8], _ body: (inout RouteTable) throws(RoutingError) -> RouteResult.Outcome
  ) -> RoutingError? {
    content.withLock { $0.record(line, body) }
  }
}

extension Volume {
  /// The control file, as a lookup finds it. The name always stands for it: a lookup that was repeated would
  /// bring new attributes, and wait with the root locked for a write that waits for a barrier.
  var controlEntry: EntryReply {
    EntryReply(
      node: ControlFile.node, attributes: control.attributes, timeout: CacheMode.forever)
  }

  public func poll(_ node: NodeID, handle: PollHandle?, reply: consuming Reply<ReplyKind.PollEvents>) {
    if node == ControlFile.node {
      reply.send(events: control.events(handle, reply.caller))
    } else {
      // As for every file that is none of the kind that one waits for.
      reply.send(events: POLLIN | POLLRDNORM | POLLOUT | POLLWRNORM)
    }
  }
}
