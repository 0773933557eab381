/// Finds out that one program makes changes in quick succession.
struct ChangeBurst {
  /// The number of requests in a row of one program, each within `AdaptiveSpin.limit`, that begin a burst. One of the last
  /// so many is a change.
  static let length = 8

  private var caller: Int32 = 0
  private var count = 0
  /// Requests since the last change.
  private var sinceChange = Self.length

  /// Records a request.
  /// - Parameters:
  ///   - caller: the thread that makes it.
  ///   - isShort: whether it arrived within the limit.
  /// - Returns: whether it belongs to a burst.
  mutating func record(caller: Int32, isChange: Bool, isShort: Bool) -> Bool {
    count = isShort && caller == self.caller ? count + 1 : 0
    self.caller = caller
    sinceChange = isChange ? 0 : sinceChange + 1
    return count >= Self.length && sinceChange < Self.length
  }
}
