import Testing

@testable import Fuse
@testable import Volume

/// Which results poll reports to which client, and how often. Clients are identified by their threads here; the
/// mount tests cover those identified by open files.
@Suite struct PollSubscribersTests {
  private let subscribers = PollSubscribers()

  private func poll(_ latest: UInt64, thread: Int32 = 1) -> Bool {
    subscribers.register(nil, Self.caller(thread))
    return subscribers.hasUndeliveredResult(nil, Self.caller(thread), latest)
  }

  private func read(upTo latest: UInt64, thread: Int32 = 1) {
    subscribers.recordRead(by: Self.caller(thread), upTo: latest)
  }

  private static func caller(_ thread: Int32) -> Caller {
    Caller(user: 0, thread: thread)
  }

  @Test("without results nothing is pending")
  func nothing() {
    #expect(!poll(0) && !poll(0) && !poll(0))
  }

  @Test("a reported result is delivered by a read, and stays so until there is a newer one")
  func delivered() {
    #expect(poll(1))
    read(upTo: 1)
    #expect(!poll(1) && !poll(1))
    #expect(poll(2))
    read(upTo: 2)
    #expect(!poll(2))
  }

  @Test("without a read, a result is reported twice, as epoll needs, and no more")
  func twice() {
    #expect(poll(5) && poll(5) && !poll(5) && !poll(5))
    #expect(poll(6) && poll(6) && !poll(6))
  }

  @Test("a read before the first report delivers nothing")
  func readTooEarly() {
    read(upTo: 1)
    #expect(poll(1))
  }

  @Test("a read up to a later result than the reported one leaves the later one pending")
  func laterResult() {
    #expect(poll(1))
    read(upTo: 2)
    #expect(poll(2))
    read(upTo: 2)
    #expect(!poll(2))
  }

  @Test("a read by one thread delivers nothing to another")
  func otherThreads() {
    #expect(poll(1, thread: 1) && poll(1, thread: 2))
    read(upTo: 1, thread: 2)
    #expect(!poll(1, thread: 2))
    #expect(poll(1, thread: 1))
  }

  @Test("a read up to an older result than the reported one leaves the reported one pending")
  func olderResult() {
    #expect(poll(1) && poll(2))
    read(upTo: 1)
    #expect(poll(2))
  }

  @Test("beyond the capacity the oldest subscribers are dropped, and pending results reported to them again")
  func capacity() {
    let capacity = Int32(PollSubscribers.capacity)
    for thread in 1...capacity {
      #expect(poll(1, thread: thread))
      read(upTo: 1, thread: thread)
    }
    #expect(!poll(1, thread: 1) && !poll(1, thread: capacity))
    #expect(poll(1, thread: capacity + 1))
    #expect(!poll(1, thread: capacity))
    #expect(poll(1, thread: 1))
  }
}
