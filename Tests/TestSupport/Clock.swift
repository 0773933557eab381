import Glibc

/// Monotonic time in seconds.
public enum Clock {
  /// Calls `clock_gettime(2)` with `CLOCK_MONOTONIC`.
  public static var now: Double {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }

  /// Suspends the calling thread.
  public static func sleep(_ seconds: Double) {
    usleep(UInt32(max(0, seconds) * 1e6))
  }
}
