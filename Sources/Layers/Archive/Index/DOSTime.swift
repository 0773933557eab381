import Glibc

/// Decodes DOS times, which are local and count two-second steps.
struct DOSTime {
  private var minute: UInt32?
  private var start: Int64 = 0

  /// Nanoseconds since the epoch. Out-of-range fields (month 0, 31 April) carry over.
  mutating func nanoseconds(date: UInt16, time: UInt16) -> Int64 {
    // Adjacent entries often share the minute, and `mktime(3)` is slow.
    let key = UInt32(date) << 16 | UInt32(time & ~0x1F)
    if key != minute {
      var parts = tm()
      parts.tm_year = CInt(date >> 9) + 80
      parts.tm_mon = CInt(date >> 5 & 0xF) - 1
      parts.tm_mday = CInt(date & 0x1F)
      parts.tm_hour = CInt(time >> 11)
      parts.tm_min = CInt(time >> 5 & 0x3F)
      parts.tm_isdst = -1
      start = Int64(mktime(&parts))
      minute = key
    }
    return (start + Int64(time & 0x1F) * 2) * 1_000_000_000
  }
}
