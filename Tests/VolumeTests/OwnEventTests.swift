import Fuse
import Posix
import TestSupport
import Testing

@testable import Volume

/// Events of files that the mount has written to, and of names that it has changed.
@Suite struct OwnEventTests {
  /// A file that the mount has made, and its node.
  private func madeFile() throws -> (WritableStore, NodeID) {
    let fixture = try WritableStore()
    try (fixture.upper / "a").write("content")
    let node = try fixture.lookUp("a")
    fixture.own.recordNewFile(node, try fixture.status(of: "a"))
    return (fixture, node)
  }

  /// Changes the file as a request does.
  private func change(
    _ fixture: WritableStore, _ node: NodeID, _ times: OwnChanges.KnownTimes = .same,
    _ body: () throws -> Void
  ) throws {
    var failure: (any Error)?
    _ = try fixture.own.changing(
      node, times: times, { () throws(Errno) in ((), try Self.status(fixture)) },
      { _ throws(Errno) in try Self.status(fixture) },
      { _ in do { try body() } catch { failure = error } })
    if let failure { throw failure }
  }

  private static func status(_ fixture: WritableStore) throws(Errno) -> FileStatus {
    do { return try fixture.status(of: "a") } catch { throw .ioError }
  }

  @Test("the events of a change and of the closing of our descriptor have nothing to tell")
  func ownChange() throws {
    let (fixture, node) = try madeFile()
    try change(fixture, node) { try (fixture.upper / "a").overwrite([1], at: 0) }
    #expect(fixture.cause(of: .modified, at: "a") == .ours)
    fixture.own.willClose(node)
    #expect(fixture.cause(of: .closeWrite, at: "a") == .ours)
  }

  @Test(
    "the kernel has old times after a write, until a reply gives it the new ones or another program changes the file"
  )
  func oldTimes() throws {
    let (fixture, node) = try madeFile()
    let status = { try fixture.status(of: "a") }
    let write = { (times: OwnChanges.KnownTimes) in
      try self.change(fixture, node, times) { try (fixture.upper / "a").overwrite([1], at: 0) }
    }
    #expect(!fixture.own.hasOldTimes(of: node, as: try status()))
    try write(.old)
    #expect(fixture.own.hasOldTimes(of: node, as: try status()))
    try write(.same)
    #expect(fixture.own.hasOldTimes(of: node, as: try status()))
    let given = try status()
    try write(.old)
    fixture.own.recordTimes(of: node, as: given)
    #expect(fixture.own.hasOldTimes(of: node, as: try status()), "a write came in between")
    fixture.own.recordTimes(of: node, as: try status())
    #expect(!fixture.own.hasOldTimes(of: node, as: try status()))
    try write(.old)
    try write(.new)
    #expect(!fixture.own.hasOldTimes(of: node, as: try status()))
    try write(.old)
    try (fixture.upper / "a").overwrite([2], at: 0)
    #expect(!fixture.own.hasOldTimes(of: node, as: try status()))
  }

  @Test("what another program writes during a change of ours is known when it closes the file")
  func foreignClose() throws {
    let (fixture, node) = try madeFile()
    // Both are between the two looks at the file.
    try change(fixture, node) {
      try (fixture.upper / "a").overwrite([1], at: 0)
      try (fixture.upper / "a").overwrite([2], at: 1)
    }
    #expect(fixture.cause(of: .modified, at: "a") == .ours)
    let content = Invalidation(subject: .file(node), aspects: .content)
    #expect(fixture.cause(of: .closeWrite, at: "a") == .oursAfterOthers([content]))
    // Ours, which comes later.
    fixture.own.willClose(node)
    #expect(fixture.cause(of: .closeWrite, at: "a") == .ours)
  }

  @Test("the same if it closes the file during the change")
  func foreignCloseInBetween() throws {
    let (fixture, node) = try madeFile()
    try change(fixture, node) {
      try (fixture.upper / "a").overwrite([1], at: 0)
      #expect(fixture.cause(of: .modified, at: "a") == .ours)
      #expect(fixture.cause(of: .closeWrite, at: "a") == .ours)
    }
    #expect(fixture.invalidatedFiles() == [node])
  }

  @Test("a name that another program takes away and brings back has more events than our change")
  func broughtBack() throws {
    let fixture = try WritableStore()
    try (fixture.upper / "a").write("a")
    fixture.own.recordEntry(try fixture.status(of: "a").identity, at: WritableStore.key("a"), events: 1)
    try (fixture.upper / "a").rename(to: fixture.upper / "b")
    try (fixture.upper / "b").rename(to: fixture.upper / "a")
    #expect(fixture.cause(of: .created, at: "a") == .ours)
    #expect(fixture.cause(of: .movedFrom, at: "a") == .others)
    #expect(fixture.cause(of: .movedTo, at: "a") == .others)
  }

  @Test("the same while our change is being made")
  func broughtBackInBetween() throws {
    let fixture = try WritableStore()
    try (fixture.upper / "a").write("a")
    let (key, identity) = (WritableStore.key("a"), try fixture.status(of: "a").identity)
    for events in [1, 3] {
      try fixture.own.changing([key], in: fixture.store) { () throws(Errno) in
        fixture.own.recordEntry(identity, at: key, events: 1)
        for _ in 0..<events { #expect(fixture.cause(of: .movedTo, at: "a") == .ours) }
      }
      // With one event more than those of our changes, the name has no record any more.
      #expect(fixture.cause(of: .modified, at: "a") == (events == 1 ? .ours : .others))
    }
    #expect(fixture.invalidatedNames() == ["a"])
  }
}
