import Posix

/// What was taken back from the kernel since the mount began.
struct InvalidationCounters: Sendable {
  let entries = Counter()
  let attributes = Counter()
  let contents = Counter()
  /// Files that were put into the kernel's cache before anybody asked.
  let readAhead = Counter()
  /// Listings that were found before anybody asked.
  let listedAhead = Counter()
}
