import Testing

@testable import Fuse

@Suite struct ChangeBurstTests {
  /// Records requests of one program.
  /// - Parameter isChange: whether the request with a number is a change.
  /// - Returns: the number of the first request that belongs to a burst.
  private func first(of count: Int, _ isChange: (Int) -> Bool) -> Int? {
    var burst = ChangeBurst()
    return (0..<count).first { burst.record(caller: 7, isChange: isChange($0), isShort: true) }
  }

  @Test("changes of one program in quick succession are a burst")
  func changes() { #expect(first(of: 100) { _ in true } == ChangeBurst.length) }

  @Test("one change of eight requests makes a burst, none does not")
  func otherRequests() {
    #expect(first(of: 100) { $0 % ChangeBurst.length == 0 } != nil)
    #expect(first(of: 100) { _ in false } == nil)
    #expect(first(of: 100) { $0 == 0 } == nil, "the change is too long ago")
  }

  @Test("a late request and one of another program begin anew", arguments: [true, false])
  func interruptions(isLate: Bool) {
    var burst = ChangeBurst()
    for number in 0..<100 {
      let interrupts = number % ChangeBurst.length == 0
      let isInBurst = burst.record(
        caller: !isLate && interrupts ? 8 : 7, isChange: true, isShort: !(isLate && interrupts))
      #expect(!isInBurst, "\(number)")
    }
    let after = (0..<20).map { _ in burst.record(caller: 7, isChange: true, isShort: true) }
    #expect(after.last == true)
  }
}
