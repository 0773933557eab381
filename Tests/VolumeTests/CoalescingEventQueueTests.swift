import Fuse
import Posix
import Testing

@testable import Volume

/// What waits to be told to watchers: once each, and not too much of one directory.
@Suite struct CoalescingEventQueueTests {
  private let folder = NodeID(rawValue: 1 << 32 | 5)
  private let start = TimeSpec(seconds: 100, nanoseconds: 0)

  private func place(_ name: String) -> EntryKey { EntryKey(parent: folder, name: Array(name.utf8)) }
  private func news(_ aspects: Invalidation.Aspects, _ layer: Int = 0) -> NameChange {
    NameChange(aspects: aspects, layers: [layer])
  }

  @Test("a name is told once, with all that happened to it, where it stood first")
  func coalescing() {
    var pending = CoalescingEventQueue()
    pending.add(news(.came), at: place("a"), now: start)
    pending.add(news(.modified), at: place("b"), now: start)
    pending.add(news(.closed, 1), at: place("a"), now: start)
    #expect(pending.count == 2 && pending.coalesced == 1)
    #expect(
      pending.take(10, now: start) == [
        .name(place("a"), NameChange(aspects: [.came, .closed], layers: [0, 1])),
        .name(place("b"), news(.modified)),
      ])
    #expect(pending.take(10, now: start) == [] && pending.count == 0)
    // What has been told is told again when more happens.
    pending.add(news(.went), at: place("a"), now: start)
    #expect(pending.take(1, now: start) == [.name(place("a"), news(.went))])
  }

  @Test("only as much is taken as was asked for, and the rest comes later")
  func portions() {
    var pending = CoalescingEventQueue()
    for number in 0..<5 { pending.add(news(.came), at: place("\(number)"), now: start) }
    #expect(pending.take(2, now: start).count == 2 && pending.count == 3)
    #expect(pending.take(9, now: start).count == 3)
  }

  @Test("a directory is told once while it waits")
  func directories() {
    var pending = CoalescingEventQueue()
    for _ in 0..<3 { pending.add(directory: folder, now: start) }
    #expect(pending.coalesced == 2)
    #expect(pending.take(10, now: start) == [.directory(folder)])
  }

  @Test("beyond so many names in a second, the directory is told at its end instead, once")
  func rate() {
    var pending = CoalescingEventQueue()
    let limit = CoalescingEventQueue.namesPerSecond
    for number in 0..<(limit + 50) { pending.add(news(.came), at: place("\(number)"), now: start) }
    #expect(pending.coalesced == 50)
    #expect(pending.take(limit + 100, now: start).count == limit)
    #expect(pending.take(10, now: start) == [])
    #expect((1...1001).contains(pending.timeout(now: start)))
    let later = start.advanced(byMilliseconds: 999)
    #expect(pending.take(10, now: later) == [])
    #expect(pending.take(10, now: start.advanced(byMilliseconds: 1000)) == [.directory(folder)])
    #expect(pending.timeout(now: start.advanced(byMilliseconds: 1000)) == -1)
    // The next second has room again.
    pending.add(news(.went), at: place("0"), now: start.advanced(byMilliseconds: 1001))
    #expect(pending.take(10, now: start.advanced(byMilliseconds: 1001)) == [.name(place("0"), news(.went))])
  }

  @Test("if nobody takes anything, there is an end to it")
  func standstill() {
    var pending = CoalescingEventQueue()
    let limit = CoalescingEventQueue.most
    for number in 0..<UInt64(limit + 500) {
      let parent = NodeID(rawValue: 2 << 32 | number)
      pending.add(news(.came), at: EntryKey(parent: parent, name: [65]), now: start)
    }
    #expect(pending.count == limit && pending.coalesced == 500)
    let later = pending.take(2 * limit, now: start.advanced(byMilliseconds: 1000))
    #expect(
      later.count == limit + 500 && later.last == .directory(NodeID(rawValue: 2 << 32 | UInt64(limit + 499))))
  }

  @Test("one directory's names do not count for another's")
  func otherDirectories() {
    var pending = CoalescingEventQueue()
    let limit = CoalescingEventQueue.namesPerSecond
    for number in 0..<(limit + 1) { pending.add(news(.came), at: place("\(number)"), now: start) }
    let other = EntryKey(parent: .root, name: [65])
    pending.add(news(.came), at: other, now: start)
    #expect(pending.take(limit + 9, now: start).last == .name(other, news(.came)))
  }

  @Test("a renaming stands for both its names, whichever comes first", arguments: [true, false])
  func renaming(isSourceFirst: Bool) {
    var pending = CoalescingEventQueue()
    for name in isSourceFirst ? ["a", "b"] : ["b", "a"] {
      pending.add(news(name == "a" ? .went : .came), at: place(name), now: start)
    }
    pending.addRenaming(from: place("a"), to: place("b"))
    #expect(
      pending.take(10, now: start) == [.renaming(place("a"), news(.went), to: place("b"), news(.came))])
    #expect(pending.count == 0)
    // Without its names it is nothing.
    pending.addRenaming(from: place("a"), to: place("b"))
    pending.add(news(.went), at: place("a"), now: start)
    #expect(pending.take(10, now: start) == [.name(place("a"), news(.went))])
  }

  @Test("of renamings in a row, each name is in one at most")
  func chains() {
    var pending = CoalescingEventQueue()
    for name in ["a", "b", "c"] { pending.add(news([.came, .went]), at: place(name), now: start) }
    pending.addRenaming(from: place("a"), to: place("b"))
    pending.addRenaming(from: place("c"), to: place("b"))
    let told = pending.take(10, now: start)
    #expect(told.count == 2 && told.first == .name(place("a"), news([.came, .went])))
    guard case .renaming(place("c"), _, to: place("b"), _) = told.last else {
      Issue.record("\(told)")
      return
    }
  }

  @Test("what is dropped is counted, and nothing is left")
  func dropping() {
    var pending = CoalescingEventQueue()
    pending.add(news(.came), at: place("a"), now: start)
    pending.add(news(.came), at: place("a"), now: start)
    pending.add(directory: folder, now: start)
    #expect(pending.removeAll() == 2 && pending.coalesced == 1)
    #expect(pending.take(10, now: start.advanced(byMilliseconds: 5000)) == [])
  }
}
