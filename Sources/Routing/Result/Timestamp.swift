/// A moment, written as ISO 8601 has it: UTC, to the millisecond.
public struct Timestamp: Hashable, Sendable, CustomStringConvertible {
  /// Seconds since 1970 began.
  public let seconds: Int64
  /// And nanoseconds, less than a second.
  public let nanoseconds: Int64

  /// A moment between the years 0 and 9999; earlier and later ones become the first and the last second of
  /// these.
  public init(seconds: Int64, nanoseconds: Int64) {
    self.seconds = min(max(seconds, -62_167_219_200), 253_402_300_799)
    self.nanoseconds = min(max(nanoseconds, 0), 999_999_999)
  }

  /// Such as `2026-01-02T03:04:05.678Z`.
  public var description: String {
    let days = seconds >= 0 ? seconds / 86_400 : (seconds - 86_399) / 86_400
    let time = seconds - days * 86_400
    let (year, month, day) = Self.date(days)
    return "\(Self.padded(year, 4))-\(Self.padded(month, 2))-\(Self.padded(day, 2))"
      + "T\(Self.padded(time / 3600, 2)):\(Self.padded(time / 60 % 60, 2)):\(Self.padded(time % 60, 2))"
      + ".\(Self.padded(nanoseconds / 1_000_000, 3))Z"
  }

  /// The date so many days after 1 January 1970.
  private static func date(_ days: Int64) -> (year: Int64, month: Int64, day: Int64) {
    // The calendar repeats every 400 years, which have 146,097 days; 719,528 days lie between the years 0
    // and 1970.
    var rest = days + 719_528
    var year = rest / 146_097 * 400
    rest %= 146_097
    while rest >= length(ofYear: year) {
      rest -= length(ofYear: year)
      year += 1
    }
    var month: Int64 = 1
    while rest >= length(ofMonth: month, in: year) {
      rest -= length(ofMonth: month, in: year)
      month += 1
    }
    return (year, month, rest + 1)
  }

  private static func isLeap(_ year: Int64) -> Bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
  }

  private static func length(ofYear year: Int64) -> Int64 { isLeap(year) ? 366 : 365 }

  private static func length(ofMonth month: Int64, in year: Int64) -> Int64 {
    switch month {
    case 2: isLeap(year) ? 29 : 28
    case 4, 6, 9, 11: 30
    default: 31
    }
  }

  private static func padded(_ value: Int64, _ width: Int) -> String {
    let digits = String(value)
    return String(repeating: "0", count: max(0, width - digits.count)) + digits
  }
}
