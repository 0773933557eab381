import Fuse
import Layers
import Posix
import Routing

/// IOCTL: what the mount reports about itself, page by page, in the forms of `StatusProtocol`.
struct StatusRequests: Sendable {
  let reporter: StatusReporter
  let control: ControlFile
  let store: NodeStore
  let reserved: ReservedNames
  let commands: ControlCommandRunner
  private let pages = Locked(PagedReplies())
  /// Compares the layers of directories, which takes long in a large one.
  let worker = SerialWorker(name: "diff")

  func run(_ command: UInt32, of node: NodeID, size: Int, _ reply: consuming Reply<ReplyKind.Ioctl>) {
    let page = UInt8(truncatingIfNeeded: command)
    guard let form = StatusProtocol.Form(rawValue: UInt8(truncatingIfNeeded: command >> 8)),
      command == StatusProtocol.command(form, page: page), node == .root || form.isOfDirectory
    else {
      return reply.fail(.inappropriateIOCTLForDevice)
    }
    let isOwner = control.isOwner(reply.caller)
    if form == .disconnect, isOwner { control.disconnectSubscribers() }
    if form == .upgrade { return isOwner ? upgrade(reply) : reply.fail(.permissionDenied) }
    if form == .barrier { return isOwner ? passBarrier(reply) : reply.fail(.permissionDenied) }
    guard form.isOfDirectory else { return send(form, of: node, page, reply) }
    // The layers may have names that other users must not see.
    if !isOwner { return reply.fail(.permissionDenied) }
    if page > 0 { return send(form, of: node, page, reply) }
    let key = PagedReplies.Key(form: form, node: node, caller: reply.caller)
    let deferred = DeferredReply(reply)
    let isQueued = worker.add { [self] in compare(key, deferred) }
    if !isQueued { deferred.abandon(.ioError) }
  }

  private func passBarrier(_ reply: consuming Reply<ReplyKind.Ioctl>) {
    let deferred = DeferredReply(reply)
    let isAwaited = commands.barrier { deferred.take()?.send(Self.page(0, of: [])) }
    if !isAwaited { deferred.take()?.send(Self.page(0, of: [])) }
  }

  private func upgrade(_ reply: consuming Reply<ReplyKind.Ioctl>) {
    guard let upgrade = reporter.options.upgrade else { return reply.fail(.notSupported) }
    let deferred = DeferredReply(reply)
    let isQueued = worker.add {
      let refusal = upgrade.refusal()
      deferred.take()?.send(Self.page(0, of: Array((refusal ?? "").utf8)))
      if refusal == nil { upgrade.begin() }
    }
    if !isQueued { deferred.abandon(.ioError) }
  }

  /// Compares on a thread of the layer instead if one may not answer, even if the comparison did without it.
  private func compare(_ key: PagedReplies.Key, _ deferred: DeferredReply<ReplyKind.Ioctl>) {
    let compared: Result<[UInt8], Errno>
    do throws(Errno) { compared = .success(try page(0, of: key)) } catch { compared = .failure(error) }
    if store.stack.runDeferred({ compare(key, deferred) }) { return }
    guard let reply = deferred.take() else { return }
    switch compared {
    case .success(let bytes): reply.send(bytes)
    case .failure(let error): reply.fail(error)
    }
  }

  private func send(
    _ form: StatusProtocol.Form, of node: NodeID, _ page: UInt8, _ reply: consuming Reply<ReplyKind.Ioctl>
  ) {
    let key = PagedReplies.Key(form: form, node: node, caller: reply.caller)
    do throws(Errno) {
      let bytes = try self.page(page, of: key)
      // A layer was left out that may answer a thread that waits for it.
      if LayerAccess.current == .shared, LayerAccess.deferredLayer != nil { throw .deferred }
      reply.send(bytes)
    } catch { reply.fail(error) }
  }

  /// The text's length (four bytes, little-endian) and a page of it.
  private func page(_ page: UInt8, of key: PagedReplies.Key) throws(Errno) -> [UInt8] {
    Self.page(page, of: try text(key, page: page))
  }

  private static func page(_ page: UInt8, of text: [UInt8]) -> [UInt8] {
    let length = UInt32(text.count)
    let start = min(Int(page) * StatusProtocol.pageSize, text.count)
    let part = text[start..<min(start + StatusProtocol.pageSize, text.count)]
    return withUnsafeBytes(of: length.littleEndian) { Array($0) } + part
  }

  private func text(_ key: PagedReplies.Key, page: UInt8) throws(Errno) -> [UInt8] {
    if page > 0 {
      guard let text = pages.withLock({ $0.text(key, page: page) }) else { throw .staleFileHandle }
      return text
    }
    let text = try text(key.form, of: key.node, showsNames: control.isOwner(key.caller))
    if text.count > StatusProtocol.maxTextSize { throw .fileTooLarge }
    // A text that fits one page is not asked for again.
    if text.count > StatusProtocol.pageSize { pages.withLock { $0.keep(text, key) } }
    return text
  }

  private func text(
    _ form: StatusProtocol.Form, of node: NodeID, showsNames: Bool
  ) throws(Errno) -> [UInt8] {
    switch form {
    case .json: Array(reporter.status(showsNames: showsNames).json.utf8)
    case .text: Array(reporter.status(showsNames: showsNames).text.utf8)
    case .controlName: control.name
    case .resources: reporter.resourceSearchPath
    case .differences: ComparisonText.encoded(try comparison(of: node), isWhole: false)
    case .entries: ComparisonText.encoded(try comparison(of: node), isWhole: true)
    case .disconnect, .upgrade, .barrier: []
    }
  }

  private func comparison(of node: NodeID) throws(Errno) -> [ComparedName] {
    if node.isReserved { throw .inappropriateIOCTLForDevice }
    let path = try store.path(of: node)
    let compared = try store.stack.comparison(of: try store.merged(of: node), at: path)
    return path.isEmpty ? compared.filter { !reserved.contains($0.name) } : compared
  }
}

extension StatusProtocol.Form {
  /// Whether it concerns the directory that the IOCTL is sent to, rather than the mount.
  fileprivate var isOfDirectory: Bool { self == .differences || self == .entries }
}
