import Fuse
import Layers
import Posix
import Routing

/// What a mount tells of itself, page by page, as `StatusProtocol` has it.
extension Volume {
  public func control(
    _ command: UInt32, of node: NodeID, size: Int, reply: consuming Reply<Answers.Control>
  ) {
    let page = UInt8(truncatingIfNeeded: command)
    guard let form = StatusProtocol.Form(rawValue: UInt8(truncatingIfNeeded: command >> 8)),
      command == StatusProtocol.command(form, page: page),
      node == .root || form == .differences || form == .entries
    else {
      reply.fail(.notTypewriter)
      return
    }
    if form == .farewell, control.isOwner(reply.requester) { control.sendListenersAway() }
    do throws(Errno) {
      let text = try toldText(form, of: node, page: page, to: reply.requester)
      let length = UInt32(text.count)
      let start = min(Int(page) * StatusProtocol.pageSize, text.count)
      let part = text[start..<min(start + StatusProtocol.pageSize, text.count)]
      reply.pay(withUnsafeBytes(of: length.littleEndian) { Array($0) } + part)
    } catch { reply.fail(error) }
  }

  /// A text of several pages, until the next one of its form is asked for.
  struct ToldText: Sendable {
    let node: NodeID
    let requester: Requester
    let bytes: [UInt8]
  }

  private func toldText(
    _ form: StatusProtocol.Form, of node: NodeID, page: UInt8, to requester: Requester
  ) throws(Errno) -> [UInt8] {
    guard page == 0 else {
      let text = toldTexts.withLock { $0[form] }
      guard let text, text.node == node, text.requester == requester else { throw .stale }
      return text.bytes
    }
    let bytes = try told(form, of: node)
    if bytes.count > StatusProtocol.largestText { throw .tooLarge }
    // What fits a page is not asked for again.
    if bytes.count > StatusProtocol.pageSize {
      let text = ToldText(node: node, requester: requester, bytes: bytes)
      toldTexts.withLock { $0[form] = text }
    }
    return bytes
  }

  private func told(_ form: StatusProtocol.Form, of node: NodeID) throws(Errno) -> [UInt8] {
    switch form {
    case .json: Array(status.json.utf8)
    case .text: Array(status.text.utf8)
    case .controlName: control.name
    case .resources: resourcePlaces
    case .differences: ComparisonText.encoded(try comparison(of: node), isWhole: false)
    case .entries: ComparisonText.encoded(try comparison(of: node), isWhole: true)
    case .farewell: []
    }
  }

  /// What the layers have in a directory, but for what the control file hides.
  private func comparison(of node: NodeID) throws(Errno) -> [ComparedName] {
    if node == ControlFile.node || ResourceFolderNodes.contain(node) { throw .notTypewriter }
    let path = try path(of: node)
    let compared = try stack.comparison(of: try merged(of: node), at: path)
    return path.isEmpty ? compared.filter { $0.name != control.name } : compared
  }
}
