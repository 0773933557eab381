/// The elements of XML property lists that are neither strings nor collections.
enum XMLScalar: String {
  case data, date, integer, real
  case `true`, `false`

  /// The value for an element's text; `unknown` if the text is malformed.
  func value(of text: [UInt8]) -> PropertyListValue {
    switch self {
    case .true: .boolean(true)
    case .false: .boolean(false)
    case .data: Self.base64(text).map(PropertyListValue.data) ?? .unknown
    case .integer: Self.integer(Self.trimmed(text))
    case .real: Double(Self.trimmed(text)).map(PropertyListValue.real) ?? .unknown
    case .date: Self.date(Self.trimmed(text)).map(PropertyListValue.date) ?? .unknown
    }
  }

  /// A short text without the whitespace around it; longer ones are no numbers.
  private static func trimmed(_ text: [UInt8]) -> String {
    let start = text.drop { $0 <= 0x20 }
    let end = start.lastIndex { $0 > 0x20 } ?? start.startIndex
    let word = start[start.startIndex..<min(end + 1, start.endIndex)]
    return word.count > 400 ? "" : String(decoding: word, as: UTF8.self)
  }

  private static func integer(_ text: String) -> PropertyListValue {
    let isNegative = text.hasPrefix("-")
    var digits = isNegative || text.hasPrefix("+") ? text.dropFirst() : text[...]
    var radix = 10
    if digits.hasPrefix("0x") || digits.hasPrefix("0X") { (digits, radix) = (digits.dropFirst(2), 16) }
    guard digits.first?.isHexDigit == true else { return .unknown }
    if let value = Int64((isNegative ? "-" : "") + digits, radix: radix) { return .integer(value) }
    return isNegative ? .unknown : UInt64(digits, radix: radix).map(PropertyListValue.unsigned) ?? .unknown
  }

  /// Parses `YYYY-MM-DDTHH:MM:SSZ`.
  private static func date(_ text: String) -> Double? {
    let parts = text.utf8.split(maxSplits: 6, omittingEmptySubsequences: false) { "-T:Z".utf8.contains($0) }
    let numbers = parts.dropLast().compactMap { Int(String(decoding: $0, as: UTF8.self)) }
    guard parts.count == 7, parts[6].isEmpty, numbers.count == 6,
      numbers.allSatisfy({ (0...9999).contains($0) }),
      (1...12).contains(numbers[1])
    else { return nil }
    // Days of the civil calendar, in years that begin in March.
    let year = numbers[0] - (numbers[1] < 3 ? 1 : 0)
    let month = (numbers[1] + 9) % 12
    let century = year >= 0 ? year / 100 : -1
    let leapDays = (year >= 0 ? year / 4 : -1) - century + (century >= 0 ? century / 4 : -1)
    let day = 365 * year + leapDays + (153 * month + 2) / 5 + numbers[2] - 1
    let seconds = numbers[3] * 3600 + numbers[4] * 60 + numbers[5]
    // 2001-01-01 is day 730,791 since 0000-03-01.
    return Double((day - 730_791) * 86_400 + seconds)
  }

  /// Decodes Base64, skipping whitespace.
  private static func base64(_ text: [UInt8]) -> [UInt8]? {
    var (bytes, bits, count) = ([UInt8](), UInt32(0), 0)
    for character in text where character > 0x20 && character != UInt8(ascii: "=") {
      guard let digit = digits[Int(character)] else { return nil }
      (bits, count) = ((bits << 6 | digit) & 0xFFFFFF, count + 6)
      if count >= 8 {
        count -= 8
        bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
      }
    }
    return bytes
  }

  private static let digits: [UInt32?] = {
    let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
    var digits = [UInt32?](repeating: nil, count: 256)
    for (value, character) in alphabet.enumerated() { digits[Int(character)] = UInt32(value) }
    return digits
  }()
}
