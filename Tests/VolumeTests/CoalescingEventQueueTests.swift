import Fuse
import Posix
import Testing

@testable import Volume

@Suite struct CoalescingEventQueueTests {
  private let folder = NodeID(rawValue: 1 << 32 | 5)
  private let start = TimeSpec(seconds: 100, nanoseconds: 0)

  private func key(_ name: String) -> EntryKey { EntryKey(parent: folder, name: Array(name.utf8)) }
  private func change(_ aspects: Invalidation.Aspects, _ layer: Int = 0) -> NameChange {
    NameChange(aspects: aspects, layers: [layer])
  }

  @Test("changes of one name are merged into its first item")
  func coalescing() {
    var queue = CoalescingEventQueue()
    queue.add(change(.added), at: key("a"), now: start)
    queue.add(change(.modified), at: key("b"), now: start)
    queue.add(change(.closed, 1), at: key("a"), now: start)
    #expect(queue.count == 2 && queue.coalesced == 1)
    #expect(
      queue.take(10, now: start) == [
        .name(key("a"), NameChange(aspects: [.added, .closed], layers: [0, 1])),
        .name(key("b"), change(.modified)),
      ])
    #expect(queue.take(10, now: start) == [] && queue.count == 0)
    // A change after the item was taken makes a new item.
    queue.add(change(.removed), at: key("a"), now: start)
    #expect(queue.take(1, now: start) == [.name(key("a"), change(.removed))])
  }

  @Test("no more items are taken than the limit; the rest stays")
  func limit() {
    var queue = CoalescingEventQueue()
    for number in 0..<5 { queue.add(change(.added), at: key("\(number)"), now: start) }
    #expect(queue.take(2, now: start).count == 2 && queue.count == 3)
    #expect(queue.take(9, now: start).count == 3)
  }

  @Test("a directory is in the queue once")
  func directories() {
    var queue = CoalescingEventQueue()
    for _ in 0..<3 { queue.add(directory: folder, now: start) }
    #expect(queue.coalesced == 2)
    #expect(queue.take(10, now: start) == [.directory(folder)])
  }

  @Test("names beyond the limit of a window become one item of the directory at its end")
  func rate() {
    var queue = CoalescingEventQueue()
    let limit = CoalescingEventQueue.namesPerWindow
    for number in 0..<(limit + 50) { queue.add(change(.added), at: key("\(number)"), now: start) }
    #expect(queue.coalesced == 50)
    #expect(queue.take(limit + 100, now: start).count == limit)
    #expect(queue.take(10, now: start) == [])
    #expect((1...1001).contains(queue.timeout(now: start)))
    let later = start.advanced(byMilliseconds: 999)
    #expect(queue.take(10, now: later) == [])
    #expect(queue.take(10, now: start.advanced(byMilliseconds: 1000)) == [.directory(folder)])
    #expect(queue.timeout(now: start.advanced(byMilliseconds: 1000)) == -1)
    // The next window admits names again.
    queue.add(change(.removed), at: key("0"), now: start.advanced(byMilliseconds: 1001))
    #expect(queue.take(10, now: start.advanced(byMilliseconds: 1001)) == [.name(key("0"), change(.removed))])
  }

  @Test("without a consumer the queue stays within its capacity")
  func capacity() {
    var queue = CoalescingEventQueue()
    let limit = CoalescingEventQueue.capacity
    for number in 0..<UInt64(limit + 500) {
      let parent = NodeID(rawValue: 2 << 32 | number)
      queue.add(change(.added), at: EntryKey(parent: parent, name: [65]), now: start)
    }
    #expect(queue.count == limit && queue.coalesced == 500)
    let later = queue.take(2 * limit, now: start.advanced(byMilliseconds: 1000))
    #expect(
      later.count == limit + 500 && later.last == .directory(NodeID(rawValue: 2 << 32 | UInt64(limit + 499))))
  }

  @Test("the limit applies to each directory separately")
  func otherDirectories() {
    var queue = CoalescingEventQueue()
    let limit = CoalescingEventQueue.namesPerWindow
    for number in 0..<(limit + 1) { queue.add(change(.added), at: key("\(number)"), now: start) }
    let other = EntryKey(parent: .root, name: [65])
    queue.add(change(.added), at: other, now: start)
    #expect(queue.take(limit + 9, now: start).last == .name(other, change(.added)))
  }

  @Test("a renaming replaces the items of both names, whichever comes first", arguments: [true, false])
  func renaming(isSourceFirst: Bool) {
    var queue = CoalescingEventQueue()
    for name in isSourceFirst ? ["a", "b"] : ["b", "a"] {
      queue.add(change(name == "a" ? .removed : .added), at: key(name), now: start)
    }
    queue.addRenaming(from: key("a"), to: key("b"))
    #expect(
      queue.take(10, now: start) == [.renaming(key("a"), change(.removed), to: key("b"), change(.added))])
    #expect(queue.count == 0)
    // It is ignored unless both names are in the queue.
    queue.addRenaming(from: key("a"), to: key("b"))
    queue.add(change(.removed), at: key("a"), now: start)
    #expect(queue.take(10, now: start) == [.name(key("a"), change(.removed))])
  }

  @Test("each name is in at most one renaming")
  func chains() {
    var queue = CoalescingEventQueue()
    for name in ["a", "b", "c"] { queue.add(change([.added, .removed]), at: key(name), now: start) }
    queue.addRenaming(from: key("a"), to: key("b"))
    queue.addRenaming(from: key("c"), to: key("b"))
    let taken = queue.take(10, now: start)
    #expect(taken.count == 2 && taken.first == .name(key("a"), change([.added, .removed])))
    guard case .renaming(key("c"), _, to: key("b"), _) = taken.last else {
      Issue.record("\(taken)")
      return
    }
  }

  @Test("it occupies no more than a few slots while a consumer keeps up with two directories")
  func consumedSlots() {
    var queue = CoalescingEventQueue()
    let other = NodeID(rawValue: 1 << 32 | 6)
    for step in 0..<20_000 {
      let now = start.advanced(byMilliseconds: CInt(step))
      for parent in [folder, other] {
        queue.add(change(.added), at: EntryKey(parent: parent, name: Array("\(step)".utf8)), now: now)
      }
      // Never drained.
      _ = queue.take(step == 0 ? 1 : 2, now: now)
    }
    #expect(queue.slots < 200)
  }

  @Test("names that are renamed again and again occupy one slot each")
  func repeatedRenaming() {
    var queue = CoalescingEventQueue()
    for step in 0..<5000 {
      let now = start.advanced(byMilliseconds: CInt(10 * step))
      for name in ["a", "b"] { queue.add(change([.added, .removed]), at: key(name), now: now) }
      queue.addRenaming(from: key("a"), to: key("b"))
      #expect(queue.take(1, now: now).count == 1)
    }
    #expect(queue.slots < 100)
  }

  @Test("removeAll counts the items and leaves none")
  func removeAll() {
    var queue = CoalescingEventQueue()
    queue.add(change(.added), at: key("a"), now: start)
    queue.add(change(.added), at: key("a"), now: start)
    queue.add(directory: folder, now: start)
    #expect(queue.removeAll() == 2 && queue.coalesced == 1)
    #expect(queue.take(10, now: start.advanced(byMilliseconds: 5000)) == [])
  }
}
