import Posix
import Testing

@testable import Fuse
@testable import Volume

/// Which requests belong to a synthetic change: no other request may get its reply.
@Suite struct ExpectedRequestTests {
  private let expectation = ExpectedRequest()
  private let folder = NodeID(rawValue: 1 << 32 | 5)

  private func key(_ name: String, in parent: NodeID? = nil) -> EntryKey {
    EntryKey(parent: parent ?? folder, name: Array(name.utf8))
  }

  @Test("only requests of the announcer thread match, and 0 is no thread")
  func threads() {
    #expect(!expectation.isOwn(Caller(user: 0, thread: 0)))
    expectation.setThread(77)
    #expect(expectation.isOwn(Caller(user: 1000, thread: 77)))
    for other: Int32 in [0, 76, 78, -1] { #expect(!expectation.isOwn(Caller(user: 0, thread: other))) }
  }

  @Test("nothing is accepted unless it is expected")
  func nothing() {
    #expect(expectation.reply(toLookup: key("a")) == nil)
    #expect(expectation.consume(.node, at: key("a")) == nil)
    #expect(!expectation.consume(.disappearance(key("a"), isDirectory: false)))
    let wasReceived = expectation.expect(.touch(5)) {}
    #expect(!wasReceived)
    #expect(!expectation.consume(.touch(5)), "the expectation ended with the body")
  }

  @Test("a removal is accepted once, and only with its directory, name and kind")
  func removal() {
    let change = SyntheticChange.disappearance(key("a"), isDirectory: false)
    let wasReceived = expectation.expect(change) {
      #expect(expectation.reply(toLookup: key("a")) == .tombstone(isDirectory: false))
      #expect(expectation.reply(toLookup: key("b")) == nil)
      #expect(expectation.reply(toLookup: key("a", in: .root)) == nil)
      #expect(!expectation.consume(.disappearance(key("b"), isDirectory: false)))
      #expect(!expectation.consume(.disappearance(key("a", in: .root), isDirectory: false)))
      #expect(!expectation.consume(.disappearance(key("a"), isDirectory: true)))
      #expect(!expectation.consume(.renaming(key("a"), to: key("b"))))
      #expect(expectation.consume(.node, at: key("a")) == nil)
      #expect(expectation.consume(change))
      #expect(!expectation.consume(change), "a second time")
    }
    #expect(wasReceived)
  }

  @Test("a removal is refused while the kernel has not looked the name up")
  func removalOfDentry() {
    let change = SyntheticChange.disappearance(key("a"), isDirectory: true)
    let wasReceived = expectation.expect(change) { #expect(!expectation.consume(change)) }
    #expect(!wasReceived)
  }

  @Test(
    "a created entry must have the expected kind",
    arguments: [
      (FileKind.regular, NewEntryKind.node), (.directory, .directory), (.symbolicLink, .symbolicLink),
      (.fifo, .node),
    ])
  func creation(kind: FileKind, entry: NewEntryKind) {
    for other in [NewEntryKind.node, .directory, .symbolicLink] where other != entry {
      let wasReceived = expectation.expect(.appearance(key("a"), kind)) {
        #expect(expectation.reply(toLookup: key("a")) == .absent)
        #expect(expectation.consume(other, at: key("a")) == nil)
        #expect(expectation.consume(entry, at: key("b")) == nil)
      }
      #expect(!wasReceived)
    }
    let wasReceived = expectation.expect(.appearance(key("a"), kind)) {
      #expect(expectation.consume(entry, at: key("a")) == kind)
      #expect(expectation.consume(entry, at: key("a")) == nil)
    }
    #expect(wasReceived)
  }

  @Test("a renaming is accepted from its old name to its new one only")
  func renaming() {
    let (source, target) = (key("a"), key("b", in: .root))
    let wasReceived = expectation.expect(.renaming(source, to: target)) {
      #expect(expectation.reply(toLookup: source) == .node(of: target))
      #expect(expectation.reply(toLookup: target) == .absent)
      #expect(!expectation.consume(.renaming(target, to: source)))
      #expect(!expectation.consume(.disappearance(source, isDirectory: false)))
      #expect(expectation.consume(.renaming(source, to: target)))
    }
    #expect(wasReceived)
  }

  @Test("a renaming is refused while the kernel has not looked the old name up")
  func renamingOfDentry() {
    let change = SyntheticChange.renaming(key("a"), to: key("b"))
    let wasReceived = expectation.expect(change) {
      #expect(expectation.reply(toLookup: key("b")) == .absent)
      #expect(!expectation.consume(change), "the file that has the old name by now would get the new one")
    }
    #expect(!wasReceived)
  }

  @Test("times are set on the expected inode number only")
  func touching() {
    let wasReceived = expectation.expect(.touch(5)) {
      #expect(!expectation.consume(.touch(6)))
      #expect(expectation.reply(toLookup: key("a")) == nil)
    }
    #expect(!wasReceived)
    var isAccepted = false
    let wasTouched = expectation.expect(.touch(5)) { isAccepted = expectation.consume(.touch(5)) }
    #expect(isAccepted && wasTouched)
  }

  @Test("the root is ours only if the expected lookup was received")
  func rootProbe() {
    let name = Array("hello".utf8)
    let reached = expectation.expect(.rootProbe(name)) {
      #expect(expectation.reply(toLookup: key("hello")) == nil, "in another directory")
      #expect(expectation.reply(toLookup: key("hello", in: .root)) == .absent)
    }
    let missed = expectation.expect(.rootProbe(name)) {
      #expect(expectation.reply(toLookup: key("other", in: .root)) == nil)
    }
    #expect(reached && !missed)
  }

  @Test("a revoked request counts as not received")
  func revoking() {
    let wasReceived = expectation.expect(.appearance(key("a"), .regular)) {
      #expect(expectation.consume(.node, at: key("a")) == .regular)
      expectation.revoke()
    }
    #expect(!wasReceived)
  }
}
