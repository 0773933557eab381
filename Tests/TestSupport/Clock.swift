import Glibc

/// Time that only goes forward, in seconds.
public enum Clock {
  /// Seconds since the machine started.
  public static var now: Double {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }

  /// Holds the calling thread for that long.
  public static func sleep(_ seconds: Double) {
    usleep(UInt32(max(0, seconds) * 1e6))
  }
}
