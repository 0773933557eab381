import Glibc

/// Times as DOS keeps them: local ones, to two seconds.
struct DOSTime {
  private var minute: UInt32?
  private var start: Int64 = 0

  /// Nanoseconds since the epoch. What no calendar has (month 0, 31 April) counts on from what it has.
  mutating func nanoseconds(date: UInt16, time: UInt16) -> Int64 {
    // Entries of one minute often follow each other, and the calendar takes its time.
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
