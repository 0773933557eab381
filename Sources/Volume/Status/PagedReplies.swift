import Containers
import Fuse
import Layers
import Posix
import Routing

/// What a mount tells of itself, page by page, as `StatusProtocol` has it.
extension Volume {
  public func ioctl(
    _ command: UInt32, of node: NodeID, size: Int, reply: consuming Reply<ReplyKind.Ioctl>
  ) {
    let page = UInt8(truncatingIfNeeded: command)
    guard let form = StatusProtocol.Form(rawValue: UInt8(truncatingIfNeeded: command >> 8)),
      command == StatusProtocol.command(form, page: page), node == .root || form.isOfDirectory
    else {
      reply.fail(.inappropriateIOCTLForDevice)
      return
    }
    let isOwner = control.isOwner(reply.caller)
    if form == .disconnect, isOwner { control.disconnectListeners() }
    guard form.isOfDirectory else { return tell(form, of: node, page, reply) }
    // Layers can have names that others may not see.
    if !isOwner { return reply.fail(.permissionDenied) }
    if page > 0 { return tell(form, of: node, page, reply) }
    // That takes long in a large directory, and nobody else is to wait for it.
    let deferred = DeferredReply(reply)
    let isTaken = comparisons.add { [self] in
      if let reply = deferred.take() { tell(form, of: node, page, reply) }
    }
    if !isTaken, let reply = deferred.take() { reply.fail(.ioError) }
  }

  private func tell(
    _ form: StatusProtocol.Form, of node: NodeID, _ page: UInt8, _ reply: consuming Reply<ReplyKind.Ioctl>
  ) {
    do throws(Errno) {
      let text = try toldText(PagedReplies.Key(form: form, node: node, caller: reply.caller), page: page)
      let length = UInt32(text.count)
      let start = min(Int(page) * StatusProtocol.pageSize, text.count)
      let part = text[start..<min(start + StatusProtocol.pageSize, text.count)]
      reply.send(withUnsafeBytes(of: length.littleEndian) { Array($0) } + part)
    } catch { reply.fail(error) }
  }

  private func toldText(_ key: PagedReplies.Key, page: UInt8) throws(Errno) -> [UInt8] {
    if page > 0 {
      guard let text = pagedReplies.withLock({ $0.text(key, page: page) }) else { throw .staleFileHandle }
      return text
    }
    let text = try told(key.form, of: key.node)
    if text.count > StatusProtocol.maxTextSize { throw .fileTooLarge }
    // What fits a page is not asked for again.
    if text.count > StatusProtocol.pageSize { pagedReplies.withLock { $0.keep(text, key) } }
    return text
  }

  private func told(_ form: StatusProtocol.Form, of node: NodeID) throws(Errno) -> [UInt8] {
    switch form {
    case .json: Array(status.json.utf8)
    case .text: Array(status.text.utf8)
    case .controlName: control.name
    case .resources: resourceSearchPath
    case .differences: ComparisonText.encoded(try comparison(of: node), isWhole: false)
    case .entries: ComparisonText.encoded(try comparison(of: node), isWhole: true)
    case .disconnect: []
    }
  }

  /// What the layers have in a directory, but for what the control file hides.
  private func comparison(of node: NodeID) throws(Errno) -> [ComparedName] {
    if node == ControlFile.node || ResourceFolderNodes.contain(node) { throw .inappropriateIOCTLForDevice }
    let path = try path(of: node)
    let compared = try stack.comparison(of: try merged(of: node), at: path)
    return path.isEmpty ? compared.filter { $0.name != control.name } : compared
  }
}

extension StatusProtocol.Form {
  /// Whether it is of the directory that is asked, rather than of the mount.
  fileprivate var isOfDirectory: Bool { self == .differences || self == .entries }
}

/// Texts of several pages, until the last page has been read.
struct PagedReplies {
  struct Key: Hashable {
    let form: StatusProtocol.Form
    let node: NodeID
    let caller: Caller
  }

  /// Callers may abandon a text, so only the latest eight are kept.
  private var texts = LRUCache<Key, [UInt8]>(countLimit: 8)

  mutating func keep(_ text: [UInt8], _ key: Key) { texts.insert(text, for: key) }

  /// The text of a key, which is removed with its last page.
  mutating func text(_ key: Key, page: UInt8) -> [UInt8]? {
    guard let text = texts.value(for: key) else { return nil }
    if text.count <= (Int(page) + 1) * StatusProtocol.pageSize { texts.remove(key) }
    return text
  }
}
