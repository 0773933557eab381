import Fuse
import Posix

/// A kernel that records the notifications it receives.
final class NotifierStub: KernelNotifier {
  let notifications = Locked<[String]>([])
  /// Called while content is stored.
  private let onStore: @Sendable () -> Void

  init(onStore: @escaping @Sendable () -> Void = {}) { self.onStore = onStore }

  private func record(_ text: String) { notifications.withLock { $0.append(text) } }
  func invalidateEntry(_ name: [UInt8], in parent: NodeID) {
    record("drop \(String(decoding: name, as: UTF8.self))")
  }
  func expireEntry(_ name: [UInt8], in parent: NodeID) {
    record("expire \(String(decoding: name, as: UTF8.self))")
  }
  func deleteEntry(_ name: [UInt8], in parent: NodeID, of child: NodeID) {
    record("delete \(String(decoding: name, as: UTF8.self))")
  }
  func invalidateAttributes(of node: NodeID) { record("attributes \(node.rawValue & 0xFF)") }
  func invalidateContent(of node: NodeID) { record("content \(node.rawValue & 0xFF)") }
  func store(_ content: UnsafeRawBufferPointer, in node: NodeID) {
    record("store \(node.rawValue & 0xFF)")
    onStore()
  }
  func size(of node: NodeID) -> UInt64 { 0 }
  func refreshAttributes(of node: NodeID) { record("refresh \(node.rawValue & 0xFF)") }
  func setAccessTime(of node: NodeID, _ time: AttributeChanges.Time) {
    record("times \(node.rawValue & 0xFF)")
  }
  func openRoot() throws(Errno) -> MountRoot { throw .staleFileHandle }
}
