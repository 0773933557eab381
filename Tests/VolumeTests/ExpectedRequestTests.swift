import Posix
import Testing

@testable import Fuse
@testable import Volume

/// Which requests are a replay's: no other one may ever get a replay's answer.
@Suite struct ExpectedRequestTests {
  private let expectation = ExpectedRequest()
  private let folder = NodeID(rawValue: 1 << 32 | 5)

  private func place(_ name: String, in parent: NodeID? = nil) -> EntryKey {
    EntryKey(parent: parent ?? folder, name: Array(name.utf8))
  }

  @Test("only the announcing thread's requests count, and 0 is no thread")
  func threads() {
    #expect(!expectation.isOwn(Caller(user: 0, thread: 0)))
    expectation.setThread(77)
    #expect(expectation.isOwn(Caller(user: 1000, thread: 77)))
    for other: Int32 in [0, 76, 78, -1] { #expect(!expectation.isOwn(Caller(user: 0, thread: other))) }
  }

  @Test("when nothing is expected, nothing is taken")
  func nothing() {
    #expect(expectation.reply(toLookup: place("a")) == nil)
    #expect(expectation.consume(.node, at: place("a")) == nil)
    #expect(!expectation.consume(.disappearance(place("a"), isDirectory: false)))
    let isMet = expectation.expect(.touch(5)) {}
    #expect(!isMet)
    #expect(!expectation.consume(.touch(5)), "what was expected before is expected no more")
  }

  @Test("a removal is taken once, by its own name in its own directory, and of its own kind")
  func removal() {
    let replay = SyntheticChange.disappearance(place("a"), isDirectory: false)
    let isMet = expectation.expect(replay) {
      #expect(expectation.reply(toLookup: place("a")) == .tombstone(isDirectory: false))
      #expect(expectation.reply(toLookup: place("b")) == nil)
      #expect(expectation.reply(toLookup: place("a", in: .root)) == nil)
      #expect(!expectation.consume(.disappearance(place("b"), isDirectory: false)))
      #expect(!expectation.consume(.disappearance(place("a", in: .root), isDirectory: false)))
      #expect(!expectation.consume(.disappearance(place("a"), isDirectory: true)))
      #expect(!expectation.consume(.renaming(place("a"), to: place("b"))))
      #expect(expectation.consume(.node, at: place("a")) == nil)
      #expect(expectation.consume(replay))
      #expect(!expectation.consume(replay), "a second time")
    }
    #expect(isMet)
  }

  @Test(
    "what is made must be of the kind that is expected",
    arguments: [
      (FileKind.regular, NewEntryKind.node), (.directory, .directory), (.symbolicLink, .symbolicLink),
      (.fifo, .node),
    ])
  func making(kind: FileKind, entry: NewEntryKind) {
    for other in [NewEntryKind.node, .directory, .symbolicLink] where other != entry {
      let isMet = expectation.expect(.appearance(place("a"), kind)) {
        #expect(expectation.reply(toLookup: place("a")) == .absent)
        #expect(expectation.consume(other, at: place("a")) == nil)
        #expect(expectation.consume(entry, at: place("b")) == nil)
      }
      #expect(!isMet)
    }
    let isMet = expectation.expect(.appearance(place("a"), kind)) {
      #expect(expectation.consume(entry, at: place("a")) == kind)
      #expect(expectation.consume(entry, at: place("a")) == nil)
    }
    #expect(isMet)
  }

  @Test("a renaming is one from its old name to its new one, and not the other way round")
  func renaming() {
    let (source, target) = (place("a"), place("b", in: .root))
    let isMet = expectation.expect(.renaming(source, to: target)) {
      #expect(expectation.reply(toLookup: source) == .node(of: target))
      #expect(expectation.reply(toLookup: target) == .absent)
      #expect(!expectation.consume(.renaming(target, to: source)))
      #expect(!expectation.consume(.disappearance(source, isDirectory: false)))
      #expect(expectation.consume(.renaming(source, to: target)))
    }
    #expect(isMet)
  }

  @Test("times are set of what was opened, and of nothing else")
  func touching() {
    let isMet = expectation.expect(.touch(5)) {
      #expect(!expectation.consume(.touch(6)))
      #expect(expectation.reply(toLookup: place("a")) == nil)
    }
    #expect(!isMet)
    var isTaken = false
    let isMetNow = expectation.expect(.touch(5)) { isTaken = expectation.consume(.touch(5)) }
    #expect(isTaken && isMetNow)
  }

  @Test("the root is ours if the question reached us, and not if another did")
  func greeting() {
    let name = Array("hello".utf8)
    let reached = expectation.expect(.rootProbe(name)) {
      #expect(expectation.reply(toLookup: place("hello")) == nil, "in another directory")
      #expect(expectation.reply(toLookup: place("hello", in: .root)) == .absent)
    }
    let missed = expectation.expect(.rootProbe(name)) {
      #expect(expectation.reply(toLookup: place("other", in: .root)) == nil)
    }
    #expect(reached && !missed)
  }

  @Test("what could not be answered was not met")
  func revoking() {
    let isMet = expectation.expect(.appearance(place("a"), .regular)) {
      #expect(expectation.consume(.node, at: place("a")) == .regular)
      expectation.revoke()
    }
    #expect(!isMet)
  }
}
