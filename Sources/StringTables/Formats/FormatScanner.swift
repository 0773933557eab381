import PropertyLists

/// Splits a format into texts, specifiers as in `printf(3)`, and variables.
struct FormatScanner {
  enum Part: Hashable {
    case text(ArraySlice<UInt8>)
    case specifier(FormatSpecifier)
    /// `%#@NAME@` or `%1$#@NAME@`.
    case variable(name: String, position: Int?)
  }

  /// What the last part consists of.
  var written: ArraySlice<UInt8> { scanner.text[partStart..<scanner.offset] }

  private var scanner: ByteScanner
  private var partStart = 0

  init(_ format: String) { scanner = ByteScanner(Array(format.utf8)) }

  /// The next part; nil at the end. A percent sign that begins nothing is text.
  mutating func next() -> Part? {
    let start = scanner.offset
    partStart = start
    scanner.skip { $0 != UInt8(ascii: "%") }
    if scanner.offset > start { return .text(scanner.text[start..<scanner.offset]) }
    guard scanner.take("%") else { return nil }
    // `%%` is one percent sign.
    if scanner.take("%") { return .text(scanner.text[start..<start + 1]) }
    let afterSign = scanner
    if let part = specifier() { return part }
    scanner = afterSign
    return .text(scanner.text[start..<start + 1])
  }

  private mutating func specifier() -> Part? {
    var position: Int?
    let afterSign = scanner
    if let number = number(), number > 0, scanner.take("$") { position = number } else { scanner = afterSign }
    if scanner.take("#@") { return variable(position) }
    var specifier = FormatSpecifier(position: position)
    let flags = scanner.offset
    scanner.skip { "-+ 0#'".utf8.contains($0) }
    specifier.flags = String(
      decoding: scanner.text[flags..<scanner.offset].filter { $0 != 0x27 }, as: UTF8.self)
    if specifier.flags.utf8.count > 8 { return nil }
    if isDigit { specifier.width = number() }
    if scanner.take(".") { specifier.precision = isDigit ? number() : 0 }
    scanner.skip { "hlqjztL".utf8.contains($0) }
    guard let byte = scanner.pop(), let conversion = FormatSpecifier.Conversion(byte) else { return nil }
    specifier.conversion = conversion
    return .specifier(specifier)
  }

  private mutating func variable(_ position: Int?) -> Part? {
    let start = scanner.offset
    guard let end = scanner.skip(past: UInt8(ascii: "@")) else { return nil }
    return .variable(name: String(decoding: scanner.text[start..<end], as: UTF8.self), position: position)
  }

  private var isDigit: Bool { scanner.next.map { (0x30...0x39).contains($0) } ?? false }

  /// Up to three digits; nil without one.
  private mutating func number() -> Int? {
    var (value, count) = (0, 0)
    while count < 3, isDigit, let digit = scanner.pop() {
      (value, count) = (value * 10 + Int(digit - 0x30), count + 1)
    }
    return count > 0 && !isDigit ? value : nil
  }
}
