/// Polls for further requests after one was read, so that another worker can process them meanwhile.
///
/// A single program waits for each reply before its next request, so that the poll costs a system call and finds
/// nothing. After a number of such requests only some are followed by a poll, until one finds a request.
struct PendingRequestPoll {
  /// Polls in a row that find nothing, after which most are left out.
  static let patience = 16
  /// Then every so many requests are followed by one.
  static let interval = 4

  /// The number of requests since the last poll that found another one.
  private var alone = 0

  /// Whether another request is pending; false also if that is not looked at.
  mutating func hasMore(_ poll: () -> Bool) -> Bool {
    alone += 1
    if alone > Self.patience, !alone.isMultiple(of: Self.interval) { return false }
    if !poll() { return false }
    alone = 0
    return true
  }
}
