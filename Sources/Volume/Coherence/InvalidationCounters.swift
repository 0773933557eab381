import Posix

/// How many invalidations were sent to the kernel since the mount.
struct InvalidationCounters: Sendable {
  let entries = Counter()
  let attributes = Counter()
  let contents = Counter()
}
