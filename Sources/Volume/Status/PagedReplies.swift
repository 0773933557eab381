import Containers
import Fuse
import Routing

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
