import Fuse
import Glibc
import Posix
import Routing

/// The user's choices for the control file.
public struct ControlOptions: Sendable {
  /// Its name in the mount's root; empty for no control file.
  public var name = Array(".routes".utf8)
  /// Its permissions; the low nine bits count. The group and others get no read permission where they get write
  /// permission: with both, a shared mapping would let them change what the file's readers see.
  public var mode: UInt32 = 0o600
  /// Whether listings show it. Programs that copy, compare or remove what a folder lists should not meet it.
  public var isListed = false
  /// How many results it keeps.
  public var maxResults = defaultResults
  /// How many results it keeps unless the user chooses.
  public static let defaultResults = 1024
  /// The routes that are registered at the start.
  public var routes = RouteTable()

  /// The defaults.
  public init() {}
}

/// The control file in the mount's root: programs write URLs and commands to it, a line each, and read the
/// registered routes and the last results from it.
final class ControlFile: Sendable {
  /// Bit 63 and no other high bit: no node of the table has this number.
  static let node = NodeID(rawValue: 1 << 63 | 2)
  /// Below the numbers that files get.
  static let inodeNumber: UInt64 = 2
  /// Milliseconds for which subscribers get POLLHUP after a request to disconnect them.
  private static let disconnectTime: CInt = 2000

  /// Empty if no name leads to it.
  let name: [UInt8]
  private let mode: UInt32
  private let owner = getuid()
  private let content: Locked<ControlContent>
  private let subscribers: PollSubscribers
  let notifier: ResultNotifier
  let reassembler: Locked<WriteReassembler>
  /// Until when subscribers get POLLHUP.
  private let disconnectEnd = Locked<TimeSpec?>(nil)

  /// - Parameter memory: where a successor finds the state, and what a predecessor has left there.
  init(_ options: ControlOptions, memory: SharedMemory? = nil) {
    name = options.name
    mode = options.mode & 0o777 & ~(options.mode << 1 & 0o044)
    subscribers = PollSubscribers(memory.map { PollRecord($0) })
    let log = memory.map { ControlLog($0) }
    let content = ControlContent(options.routes, maxResults: options.maxResults, log: log)
    reassembler = Locked(WriteReassembler(content.held))
    self.content = Locked(content)
    notifier = ResultNotifier { [subscribers] in subscribers.wake() }
  }

  /// Whether a caller may change routes and use the built-in commands: the mount's owner and root.
  func isOwner(_ caller: Caller) -> Bool { caller.user == owner || caller.user == 0 }

  /// The caller of a WRITE with the rights that it has on the routes: none, if other users may open the file too and
  /// have perhaps passed it to a program with more rights than they have.
  func writer(_ caller: Caller) -> Caller {
    guard isOpenToOthers, isOwner(caller), !caller.hasOwnRights else { return caller }
    return Caller(user: .max, thread: caller.thread)
  }

  private var isOpenToOthers: Bool { mode & 0o022 != 0 }

  // MARK: - Attributes and content

  /// The reply to a LOOKUP of it. The name is valid without limit: another LOOKUP would bring new attributes and
  /// wait, with the root locked, for a write that waits for a barrier.
  var entry: EntryReply {
    EntryReply(node: Self.node, attributes: attributes, timeout: CacheMode.forever)
  }

  /// Its attributes, which the kernel must not cache.
  var attributes: NodeAttributes {
    let (size, modified) = content.withLock { ($0.size, $0.modified) }
    return NodeAttributes(
      FileStatus(
        regularFile: mode, owner: getuid(), group: getgid(), size: UInt64(size), modified: modified),
      inodeNumber: Self.inodeNumber, timeout: 0)
  }

  /// For a GETATTR, with which a read begins: what poll reported to the caller counts as read from now on.
  func attributes(for caller: Caller) -> NodeAttributes {
    subscribers.recordRead(by: caller, upTo: notifier.latest)
    return attributes
  }

  func read(at offset: Int64, size: Int) -> ArraySlice<UInt8> {
    let text = content.withLock { $0.text }
    let start = Int(clamping: offset)
    return start < text.count ? text[start..<min(text.count, start + size)] : []
  }

  /// Replies to the ioctl of `ResultsProtocol`.
  func sendResults(from input: UnsafeRawBufferPointer, size: Int, _ reply: consuming Reply<ReplyKind.Ioctl>) {
    guard let position = ResultsProtocol.position(in: input) else { return reply.fail(.invalidArgument) }
    let caller = reply.caller
    // The kernel does not say whether the file is open for reading.
    guard mayRead(caller) else { return reply.fail(.permissionDenied) }
    let page = content.withLock {
      $0.page(from: position, limit: ResultsProtocol.textSize(in: size))
    }
    subscribers.recordDelivery(to: caller, upTo: page.newest)
    reply.send(ResultsProtocol.reply(page))
  }

  /// Whether the permissions let a caller read.
  private func mayRead(_ caller: Caller) -> Bool {
    if caller.user == 0 { return true }
    if caller.user == getuid() { return mode & 0o400 != 0 }
    switch mode & 0o044 {
    case 0: return false
    case 0o044: return true
    default: return caller.isMember(of: getgid()) ? mode & 0o040 != 0 : mode & 0o004 != 0
    }
  }

  /// Replies to LSEEK: all of it is data.
  func seek(_ offset: Int64, whence: CInt, _ reply: consuming Reply<ReplyKind.Offset>) {
    let size = Int64(content.withLock { $0.size })
    if offset < 0 || offset >= size {
      reply.fail(.noSuchAddressOrDevice)
    } else {
      reply.send(whence == Descriptor.seekHole ? size : offset)
    }
  }

  /// As `PollSubscribers.recordedFiles`.
  var polledFiles: [UInt64] { subscribers.recordedFiles }

  var counts: (routes: Int, results: UInt64) { content.withLock { ($0.table.count, $0.sequence) } }

  // MARK: - Polling

  private static let writable = POLLOUT | POLLWRNORM

  /// - Parameter requested: what the caller polls for: whether it reads results by ioctl(2), and may be
  ///   woken for them at once.
  func events(_ requested: CInt, _ handle: PollHandle?, _ caller: Caller) -> CInt {
    let isListener = requested & CInt(ResultsProtocol.pollEvent) != 0
    // Registered before the latest result is looked up, so that no result is missed in between.
    subscribers.register(handle, caller, isListener: isListener)
    if isDisconnecting { return POLLHUP | Self.writable }
    let latest = isListener ? content.withLock { $0.sequence } : notifier.latest
    return subscribers.hasUndeliveredResult(handle, caller, latest)
      ? POLLIN | POLLRDNORM | POLLPRI | Self.writable : Self.writable
  }

  /// Whether programs are to leave, since the file system is about to be unmounted.
  var isDisconnecting: Bool { disconnectEnd.withLock { $0 }.map { TimeSpec.monotonic < $0 } ?? false }

  /// Makes subscribers close the file, which would keep the mount busy, by POLLHUP for two seconds.
  func disconnectSubscribers() {
    disconnectEnd.withLock { $0 = TimeSpec.monotonic.advanced(byMilliseconds: Self.disconnectTime) }
    subscribers.wake()
  }

  // MARK: - Writing

  /// As `WriteReassembler.take`.
  func take(
    _ bytes: UnsafeRawBufferPointer, at offset: Int64, appends: Bool, _ writer: Caller
  ) -> WriteReassembler.Piece {
    // The kernel has put the bytes into its pages of the file. A new mtime makes it drop them, also on failure.
    content.withLock { $0.touch() }
    return reassembler.withLock { $0.take(bytes, at: offset, appends: appends, writer) }
  }

  /// Records that a WRITE was replied to, so that subscribers may be woken for its results.
  func didReply() {
    let latest = content.withLock { $0.sequence }
    subscribers.wakeListeners(for: latest)
    notifier.repliesSent(upTo: latest)
  }

  /// How many threads listen to results.
  var listenerCount: Int { subscribers.listenerCount }

  /// Runs a command on the routes and appends its result.
  func appendResult(
    of command: Span<UInt8>, _ origin: ControlLog.Origin,
    _ body: (inout RouteTable) throws(RoutingError) -> LineOutcome
  ) -> CommandOutcome {
    content.withLock { $0.record(command, origin, body) }.map { .failed($0) } ?? .done
  }

  /// As `ControlContent.progress`.
  func progress(of request: UInt64) -> ControlLog.ResultHeader? {
    content.withLock { $0.progress(of: request) }
  }

  /// As `ControlContent.reply`.
  func reply(to request: UInt64) -> ControlLog.ResultHeader? { content.withLock { $0.reply(to: request) } }

  /// Records a reply to a WRITE before it is sent.
  func record(_ reply: ControlLog.ResultHeader) {
    let held = reassembler.withLock { $0.encoded }
    content.withLock { $0.record(reply, held: held) }
  }
}
