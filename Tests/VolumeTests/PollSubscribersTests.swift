import Testing

@testable import Fuse
@testable import Volume

/// What those who wait are told, and how often. They are known by their threads here: open files are numbered
/// by the kernel, and the tests of the mount have those.
@Suite struct PollSubscribersTests {
  private let readers = PollSubscribers()

  private func hasUndeliveredResult(_ latest: UInt64, thread: Int32 = 1) -> Bool {
    readers.register(nil, Self.caller(thread))
    return readers.hasUndeliveredResult(nil, Self.caller(thread), latest)
  }

  private func look(at latest: UInt64, thread: Int32 = 1) {
    readers.recordRead(by: Self.caller(thread), upTo: latest)
  }

  private static func caller(_ thread: Int32) -> Caller {
    Caller(user: 0, thread: thread)
  }

  @Test("where there is no result there is no news")
  func nothing() {
    #expect(!hasUndeliveredResult(0) && !hasUndeliveredResult(0) && !hasUndeliveredResult(0))
  }

  @Test("who was told and then looked is not told again, until there is more")
  func looked() {
    #expect(hasUndeliveredResult(1))
    look(at: 1)
    #expect(!hasUndeliveredResult(1) && !hasUndeliveredResult(1))
    #expect(hasUndeliveredResult(2))
    look(at: 2)
    #expect(!hasUndeliveredResult(2))
  }

  @Test("who does not look is told twice, as epoll wants it, and no more")
  func twice() {
    #expect(
      hasUndeliveredResult(5) && hasUndeliveredResult(5) && !hasUndeliveredResult(5)
        && !hasUndeliveredResult(5))
    #expect(hasUndeliveredResult(6) && hasUndeliveredResult(6) && !hasUndeliveredResult(6))
  }

  @Test("a look before anything was reported counts for nothing")
  func lookedTooEarly() {
    look(at: 1)
    #expect(hasUndeliveredResult(1))
  }

  @Test("a look that sees a later result than was reported leaves that one to be told")
  func laterResult() {
    #expect(hasUndeliveredResult(1))
    look(at: 2)
    #expect(hasUndeliveredResult(2))
    look(at: 2)
    #expect(!hasUndeliveredResult(2))
  }

  @Test("another thread's look is not one's own, and each is told by itself")
  func others() {
    #expect(hasUndeliveredResult(1, thread: 1) && hasUndeliveredResult(1, thread: 2))
    look(at: 1, thread: 2)
    #expect(!hasUndeliveredResult(1, thread: 2))
    #expect(hasUndeliveredResult(1, thread: 1))
  }

  @Test("a result that was not reported yet is not taken for told by a look")
  func lookedBetween() {
    #expect(hasUndeliveredResult(1) && hasUndeliveredResult(2))
    look(at: 1)
    #expect(hasUndeliveredResult(2))
  }

  @Test("beyond the most that are kept, the first are forgotten, who are then told again")
  func forgotten() {
    let most = Int32(PollSubscribers.most)
    for thread in 1...most {
      #expect(hasUndeliveredResult(1, thread: thread))
      look(at: 1, thread: thread)
    }
    #expect(!hasUndeliveredResult(1, thread: 1) && !hasUndeliveredResult(1, thread: most))
    #expect(hasUndeliveredResult(1, thread: most + 1))
    #expect(!hasUndeliveredResult(1, thread: most))
    #expect(hasUndeliveredResult(1, thread: 1))
  }
}
