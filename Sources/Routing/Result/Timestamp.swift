import CLibrary

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
    return String(unsafeUninitializedCapacity: 24) { text in
      var end = 0
      func write(_ number: CInt, _ width: Int, _ separator: Unicode.Scalar) {
        var rest = number
        for index in (end..<end + width).reversed() {
          text[index] = UInt8(ascii: "0") + UInt8(rest % 10)
          rest /= 10
        }
        text[end + width] = UInt8(ascii: separator)
        end += width + 1
      }
      write(fields.tm_year + 1900, 4, "-")
      write(fields.tm_mon + 1, 2, "-")
      write(fields.tm_mday, 2, "T")
      write(fields.tm_hour, 2, ":")
      write(fields.tm_min, 2, ":")
      write(fields.tm_sec, 2, ".")
      write(CInt(nanoseconds / 1_000_000), 3, "Z")
      return end
    }
  }
}
