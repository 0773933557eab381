import Testing

@testable import WebServer

/// How many connections each user may have with the server of `bundlefs ui`.
@Suite struct ConnectionSharesTests {
  @Test("users that have not shown the token have few, and the others enough")
  func shares() {
    let shares = ConnectionShares(user: 1)
    var held: [UInt32: Int] = [:]
    for user in 2...20 as ClosedRange<UInt32> {
      while shares.hasRoom(for: user) {
        shares.begin(user)
        held[user, default: 0] += 1
      }
    }
    #expect(held[2] == ConnectionShares.perStranger)
    #expect(held.values.reduce(0, +) == ConnectionShares.ofStrangers)
    #expect(shares.hasRoom(for: 1) && !shares.hasRoom(for: 20) && !shares.hasRoom(for: nil))
    shares.end(2)
    #expect(shares.hasRoom(for: 20) && shares.hasRoom(for: nil))
    shares.trust(3)
    for _ in 0..<ConnectionShares.all { shares.begin(3) }
    #expect(shares.hasRoom(for: 3) && shares.hasRoom(for: 20))
  }
}
