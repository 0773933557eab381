import CLibrary

/// Writes property lists in the XML format, indented as Apple's tools do.
public struct PropertyListXML {
  private var text: [UInt8] = []
  private let limit: Int

  private static let start = """
    <?xml version="1.0" encoding="UTF-8"?>
    <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
    <plist version="1.0">

    """

  /// The text of a dictionary, in UTF-8.
  /// - Parameter limit: the bytes after which it is cut. The values of a binary property list can be shared, so that the text
  ///   may be much longer than the file.
  public static func text(of dictionary: PropertyListDictionary, limit: Int) -> [UInt8] {
    var writer = PropertyListXML(limit: limit)
    writer.text += start.utf8
    writer.write(.dictionary(dictionary), depth: 0)
    writer.line("</plist>", 0)
    return Array(writer.text.prefix(limit))
  }

  private init(limit: Int) { self.limit = limit }

  private mutating func line(_ line: String, _ depth: Int) {
    if text.count >= limit { return }
    text += repeatElement(UInt8(ascii: "\t"), count: depth)
    text += line.utf8
    text.append(UInt8(ascii: "\n"))
  }

  /// The values nest at most as deep as the parser accepts.
  private mutating func write(_ value: PropertyListValue, depth: Int) {
    if text.count >= limit { return }
    switch value {
    case .string(let string): line("<string>\(escaped(string))</string>", depth)
    case .integer(let number): line("<integer>\(number)</integer>", depth)
    case .unsigned(let number): line("<integer>\(number)</integer>", depth)
    case .real(let number): line("<real>\(number)</real>", depth)
    case .boolean(let flag): line(flag ? "<true/>" : "<false/>", depth)
    case .data(let bytes): line("<data>\(Self.hexadecimal(bytes))</data>", depth)
    case .date(let seconds): line("<date>\(Self.date(seconds))</date>", depth)
    case .array(let values):
      if values.isEmpty { return line("<array/>", depth) }
      line("<array>", depth)
      for value in values where text.count < limit { write(value, depth: depth + 1) }
      line("</array>", depth)
    case .dictionary(let dictionary): write(dictionary, depth)
    case .unknown: line("<!-- a value of another kind -->", depth)
    }
  }

  /// The keys are sorted, as their order has no meaning.
  private mutating func write(_ dictionary: PropertyListDictionary, _ depth: Int) {
    if dictionary.members.isEmpty { return line("<dict/>", depth) }
    line("<dict>", depth)
    for member in dictionary.members.sorted(by: { $0.key < $1.key }) where text.count < limit {
      line("<key>\(escaped(member.key))</key>", depth + 1)
      write(member.value, depth: depth + 1)
    }
    line("</dict>", depth)
  }

  /// Not much more of a long text than there is room for.
  private func escaped(_ text: String) -> String {
    var result = ""
    for character in text.unicodeScalars.prefix(max(0, limit - self.text.count)) {
      switch character {
      case "&": result += "&amp;"
      case "<": result += "&lt;"
      case ">": result += "&gt;"
      default: result.unicodeScalars.append(character)
      }
    }
    return result
  }

  /// Shows bytes so that two versions can be compared, which Base64 does not.
  private static func hexadecimal(_ bytes: [UInt8]) -> String {
    let shown = bytes.prefix(1024).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    return bytes.count > 1024 ? shown + "… (\(bytes.count) bytes)" : shown
  }

  private static func date(_ seconds: Double) -> String {
    // 2001-01-01 in the time of Unix.
    guard var time = time_t(exactly: (seconds + 978_307_200).rounded()) else { return "\(seconds)" }
    var parts = tm()
    guard gmtime_r(&time, &parts) != nil else { return "\(seconds)" }
    let two = { (number: CInt) in (number < 10 ? "0" : "") + "\(number)" }
    return "\(Int(parts.tm_year) + 1900)-\(two(parts.tm_mon + 1))-\(two(parts.tm_mday))"
      + "T\(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec))Z"
  }
}
