import Glibc

/// A time in UTC, written in ISO 8601 to the millisecond.
public struct Timestamp: Hashable, Sendable, CustomStringConvertible {
  /// Seconds since the epoch, in the years 0 to 9999.
  public let seconds: Int64
  /// Nanoseconds within the second.
  public let nanoseconds: Int64

  /// Clamps the time to the years 0 to 9999.
  public init(seconds: Int64, nanoseconds: Int64) {
    self.seconds = min(max(seconds, -62_167_219_200), 253_402_300_799)
    self.nanoseconds = min(max(nanoseconds, 0), 999_999_999)
  }

  /// For example `2026-01-02T03:04:05.678Z`.
  public var description: String {
    var (time, fields) = (time_t(seconds), tm())
    gmtime_r(&time, &fields)
    let date = [(fields.tm_year + 1900, 4), (fields.tm_mon + 1, 2), (fields.tm_mday, 2)]
    let clock = [(fields.tm_hour, 2), (fields.tm_min, 2), (fields.tm_sec, 2)]
    return Self.joined(date, by: "-") + "T" + Self.joined(clock, by: ":") + "."
      + Self.padded(CInt(nanoseconds / 1_000_000), 3) + "Z"
  }

  private static func joined(_ fields: [(value: CInt, width: Int)], by separator: String) -> String {
    fields.map { padded($0.value, $0.width) }.joined(separator: separator)
  }

  private static func padded(_ value: CInt, _ width: Int) -> String {
    let digits = String(value)
    return String(repeating: "0", count: max(0, width - digits.count)) + digits
  }
}
