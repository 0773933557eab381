import CLibrary

/// Decodes DOS times, which are local and count two-second steps.
struct DOSTime {
  /// The first seconds of days since the epoch, by their date; nil for days on which, or on the day after which, the
  /// clocks change.
  private var days: [UInt16: Int64?] = [:]
  private var lastDate: UInt16?
  private var lastStart: Int64?

  /// Nanoseconds since the epoch. Out-of-range fields (month 0, 31 April, 25:61) carry over.
  mutating func nanoseconds(date: UInt16, time: UInt16) -> Int64 {
    let (hour, minute) = (CInt(time >> 11), CInt(time >> 5 & 0x3F))
    let second = Int64(time & 0x1F) * 2
    if date != lastDate {
      lastStart = start(of: date)
      lastDate = date
    }
    let start = lastStart.map { $0 + Int64(hour) * 3600 + Int64(minute) * 60 }
    return ((start ?? Self.seconds(date, hour: hour, minute: minute)) + second) * 1_000_000_000
  }

  private mutating func start(of date: UInt16) -> Int64? {
    if let known = days[date] { return known }
    let start = Self.seconds(date)
    // The hour can be up to 31.
    let isRegular = Self.seconds(date, dayOffset: 2) - start == 2 * 86_400
    days[date] = .some(isRegular ? start : nil)
    return isRegular ? start : nil
  }

  /// Calls `mktime(3)`, which is slow: without TZ in the environment it looks for a changed /etc/localtime each time.
  private static func seconds(
    _ date: UInt16, dayOffset: CInt = 0, hour: CInt = 0, minute: CInt = 0
  ) -> Int64 {
    var parts = tm()
    parts.tm_year = CInt(date >> 9) + 80
    parts.tm_mon = CInt(date >> 5 & 0xF) - 1
    parts.tm_mday = CInt(date & 0x1F) + dayOffset
    (parts.tm_hour, parts.tm_min) = (hour, minute)
    parts.tm_isdst = -1
    return Int64(mktime(&parts))
  }
}
