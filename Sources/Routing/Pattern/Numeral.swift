/// Parses numbers in URLs. The whole text must be the number.
enum Numeral {
  /// Whether the text is `-?[0-9]+` and fits 64 bits.
  static func isInteger(_ text: Span<UInt8>) -> Bool { integer(text) != nil }

  /// The value of `-?[0-9]+` if it fits 64 bits.
  static func integer(_ text: Span<UInt8>) -> Int64? {
    let start = signLength(text)
    if start == text.count { return nil }
    // Accumulates negatively because Int64.min has no positive counterpart.
    var value: Int64 = 0
    for index in start..<text.count {
      guard let digit = decimal(text[index]) else { return nil }
      let (product, overflows) = value.multipliedReportingOverflow(by: 10)
      let (difference, underflows) = product.subtractingReportingOverflow(Int64(digit))
      if overflows || underflows { return nil }
      value = difference
    }
    if start == 1 { return value }
    return value == .min ? nil : -value
  }

  /// Whether the text is `-?[0-9]+(\.[0-9]+)?` and a finite number.
  static func isNumber(_ text: Span<UInt8>) -> Bool {
    guard let form = Form(text) else { return false }
    // Double.greatestFiniteMagnitude has 309 digits.
    return form.digits <= 308 || exact(text) != nil
  }

  /// The value of `-?[0-9]+(\.[0-9]+)?`, correctly rounded; nil if that is infinite.
  static func number(_ text: Span<UInt8>) -> Double? {
    guard let form = Form(text) else { return nil }
    // Numerator and power of ten are exact up to 15 digits, so the division rounds correctly.
    guard form.digits + form.decimals <= 15 else { return exact(text) }
    var value: Int64 = 0
    for index in signLength(text)..<text.count {
      if let digit = decimal(text[index]) { value = value * 10 + Int64(digit) }
    }
    let magnitude = Double(value) / powers[form.decimals]
    return signLength(text) == 1 ? -magnitude : magnitude
  }

  private struct Form {
    let digits: Int
    let decimals: Int

    init?(_ text: Span<UInt8>) {
      let start = signLength(text)
      var point = start
      while point < text.count, decimal(text[point]) != nil { point += 1 }
      var end = point
      if point < text.count, text[point] == UInt8(ascii: ".") {
        end += 1
        while end < text.count, decimal(text[end]) != nil { end += 1 }
        if end == point + 1 { return nil }
      }
      guard point > start, end == text.count else { return nil }
      digits = point - start
      decimals = max(0, end - point - 1)
    }
  }

  private static let powers: [Double] = [
    1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
  ]

  private static func exact(_ text: Span<UInt8>) -> Double? {
    let value = text.withUnsafeBufferPointer { Double(String(decoding: $0, as: UTF8.self)) }
    return value.flatMap { $0.isFinite ? $0 : nil }
  }

  @inline(__always)
  private static func signLength(_ text: Span<UInt8>) -> Int {
    text.count > 0 && text[0] == UInt8(ascii: "-") ? 1 : 0
  }

  @inline(__always)
  private static func decimal(_ byte: UInt8) -> UInt8? {
    let digit = byte &- UInt8(ascii: "0")
    return digit < 10 ? digit : nil
  }
}
