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
    expectation.begin(thread: 77)
    #expect(expectation.isOwn(Caller(user: 1000, thread: 77)))
    for other: Int32 in [0, 76, 78, -1] { #expect(!expectation.isOwn(Caller(user: 0, thread: other))) }
  }

  @Test("when nothing is expected, nothing is taken")
  func nothing() {
    #expect(expectation.answer(toLookup: place("a")) == nil)
    #expect(expectation.takes(.node, at: place("a")) == nil)
    #expect(!expectation.takes(.disappearance(place("a"), isDirectory: false)))
    let isMet = expectation.during(.touch(5)) {}
    #expect(!isMet)
    #expect(!expectation.takes(.touch(5)), "what was expected before is expected no more")
  }

  @Test("a removal is taken once, by its own name in its own directory, and of its own kind")
  func removal() {
    let replay = SyntheticChange.disappearance(place("a"), isDirectory: false)
    let isMet = expectation.during(replay) {
      #expect(expectation.answer(toLookup: place("a")) == .tombstone(isDirectory: false))
      #expect(expectation.answer(toLookup: place("b")) == nil)
      #expect(expectation.answer(toLookup: place("a", in: .root)) == nil)
      #expect(!expectation.takes(.disappearance(place("b"), isDirectory: false)))
      #expect(!expectation.takes(.disappearance(place("a", in: .root), isDirectory: false)))
      #expect(!expectation.takes(.disappearance(place("a"), isDirectory: true)))
      #expect(!expectation.takes(.renaming(place("a"), to: place("b"))))
      #expect(expectation.takes(.node, at: place("a")) == nil)
      #expect(expectation.takes(replay))
      #expect(!expectation.takes(replay), "a second time")
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
      let isMet = expectation.during(.appearance(place("a"), kind)) {
        #expect(expectation.answer(toLookup: place("a")) == .absent)
        #expect(expectation.takes(other, at: place("a")) == nil)
        #expect(expectation.takes(entry, at: place("b")) == nil)
      }
      #expect(!isMet)
    }
    let isMet = expectation.during(.appearance(place("a"), kind)) {
      #expect(expectation.takes(entry, at: place("a")) == kind)
      #expect(expectation.takes(entry, at: place("a")) == nil)
    }
    #expect(isMet)
  }

  @Test("a renaming is one from its old name to its new one, and not the other way round")
  func renaming() {
    let (source, target) = (place("a"), place("b", in: .root))
    let isMet = expectation.during(.renaming(source, to: target)) {
      #expect(expectation.answer(toLookup: source) == .node(of: target))
      #expect(expectation.answer(toLookup: target) == .absent)
      #expect(!expectation.takes(.renaming(target, to: source)))
      #expect(!expectation.takes(.disappearance(source, isDirectory: false)))
      #expect(expectation.takes(.renaming(source, to: target)))
    }
    #expect(isMet)
  }

  @Test("times are set of what was opened, and of nothing else")
  func touching() {
    let isMet = expectation.during(.touch(5)) {
      #expect(!expectation.takes(.touch(6)))
      #expect(expectation.answer(toLookup: place("a")) == nil)
    }
    #expect(!isMet)
    var isTaken = false
    let isMetNow = expectation.during(.touch(5)) { isTaken = expectation.takes(.touch(5)) }
    #expect(isTaken && isMetNow)
  }

  @Test("the root is ours if the question reached us, and not if another did")
  func greeting() {
    let name = Array("hello".utf8)
    let reached = expectation.during(.greeting(name)) {
      #expect(expectation.answer(toLookup: place("hello")) == nil, "in another directory")
      #expect(expectation.answer(toLookup: place("hello", in: .root)) == .absent)
    }
    let missed = expectation.during(.greeting(name)) {
      #expect(expectation.answer(toLookup: place("other", in: .root)) == nil)
    }
    #expect(reached && !missed)
  }

  @Test("what could not be answered was not met")
  func revoking() {
    let isMet = expectation.during(.appearance(place("a"), .regular)) {
      #expect(expectation.takes(.node, at: place("a")) == .regular)
      expectation.revoke()
    }
    #expect(!isMet)
  }
}
