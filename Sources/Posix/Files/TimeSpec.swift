import CLinux
import CLibrary

/// A point in time, as struct timespec.
public struct TimeSpec: Hashable, Sendable, Comparable, BitwiseCopyable {
  /// Seconds since the clock's epoch; may be negative.
  public var seconds: Int64
  /// Nanoseconds, 0..<1,000,000,000.
  public var nanoseconds: UInt32

  /// Creates a time from its parts.
  @inlinable public init(seconds: Int64, nanoseconds: UInt32) {
    self.seconds = seconds
    self.nanoseconds = nanoseconds
  }

  init(_ raw: linux_time) {
    self.init(seconds: raw.seconds, nanoseconds: raw.nanoseconds)
  }

  /// The time of `CLOCK_REALTIME`.
  public static var now: TimeSpec { TimeSpec(clock: CLOCK_REALTIME) }

  /// The time of `CLOCK_MONOTONIC`.
  public static var monotonic: TimeSpec { TimeSpec(clock: CLOCK_MONOTONIC) }

  /// The time of `CLOCK_MONOTONIC` in nanoseconds.
  public static var monotonicNanoseconds: UInt64 {
    let time = monotonic
    return UInt64(time.seconds) * 1_000_000_000 + UInt64(time.nanoseconds)
  }

  /// The time a number of nanoseconds after the clock's epoch.
  public init(nanosecondsSinceEpoch nanoseconds: Int64) {
    let (seconds, rest) = nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
    self.init(
      seconds: rest < 0 ? seconds - 1 : seconds, nanoseconds: UInt32(rest < 0 ? rest + 1_000_000_000 : rest))
  }

  private init(clock: clockid_t) {
    var time = timespec()
    clock_gettime(clock, &time)
    self.init(seconds: Int64(time.tv_sec), nanoseconds: UInt32(time.tv_nsec))
  }

  /// The whole milliseconds since another time; 0 if that is later.
  public func milliseconds(since other: TimeSpec) -> CInt {
    let nanoseconds = Int64(nanoseconds) - Int64(other.nanoseconds)
    return CInt(clamping: max(0, (seconds - other.seconds) * 1000 + nanoseconds / 1_000_000))
  }

  /// The microseconds since the clock's epoch, or the nearest number that 64 bits can hold.
  public var microseconds: Int64 { clamped(unitsPerSecond: 1_000_000) }

  /// The nanoseconds since the clock's epoch, or the nearest number that 64 bits can hold: they reach from 1677 to
  /// 2262, and files may have any time.
  public var clampedNanoseconds: Int64 { clamped(unitsPerSecond: 1_000_000_000) }

  private func clamped(unitsPerSecond: Int64) -> Int64 {
    let (whole, overflows) = seconds.multipliedReportingOverflow(by: unitsPerSecond)
    let (sum, exceeds) = whole.addingReportingOverflow(Int64(nanoseconds) / (1_000_000_000 / unitsPerSecond))
    return overflows || exceeds ? (seconds < 0 ? .min : .max) : sum
  }

  /// The time a number of milliseconds later.
  public func advanced(byMilliseconds milliseconds: CInt) -> TimeSpec {
    let nanoseconds = Int64(self.nanoseconds) + Int64(milliseconds) * 1_000_000
    return TimeSpec(
      seconds: seconds + nanoseconds / 1_000_000_000, nanoseconds: UInt32(nanoseconds % 1_000_000_000))
  }

  /// Whether the left time is earlier.
  @inlinable public static func < (left: TimeSpec, right: TimeSpec) -> Bool {
    (left.seconds, left.nanoseconds) < (right.seconds, right.nanoseconds)
  }
}
