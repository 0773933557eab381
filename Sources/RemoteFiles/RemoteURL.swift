/// A URL of a web server, by `http` or `https`.
public struct RemoteURL: Hashable, Sendable {
  /// As it was given, without a fragment.
  public let text: [UInt8]

  private static let schemes = ["http", "https"]
  private static let mostBytes = 8000

  /// - Returns: nil if the text is no such URL, or has blanks or control characters.
  public init?(_ text: [UInt8]) {
    guard let authority = Self.authority(of: text), text.count <= Self.mostBytes else { return nil }
    let fragment = text.firstIndex(of: UInt8(ascii: "#")) ?? text.count
    let host = Self.withoutUser(text[authority])
    guard authority.upperBound <= fragment, let first = host.first, first != UInt8(ascii: ":"),
      text.allSatisfy({ $0 > 0x20 && $0 != 0x7F && $0 != UInt8(ascii: "\\") })
    else { return nil }
    self.text = Array(text[..<fragment])
  }

  /// Whether a text begins as a URL of a web server does, well-formed or not.
  public static func isURL(_ text: [UInt8]) -> Bool { authority(of: text) != nil }

  /// The URL for messages, the status and the table of mounts: without user and password, and with `...` in place of the
  /// query, which can be a signature.
  public var redacted: [UInt8] { Self.redacted(text) }

  /// As the property, of the URL that a text begins with; any other text stays as it is.
  public static func redacted(_ text: [UInt8]) -> [UInt8] {
    guard let authority = authority(of: text) else { return text }
    let rest = text[authority.upperBound...]
    let query = rest.firstIndex(of: UInt8(ascii: "?")) ?? text.endIndex
    let shown =
      text[..<authority.lowerBound] + withoutUser(text[authority]) + text[authority.upperBound..<query]
    if query == text.endIndex { return Array(shown) }
    return Array(shown) + Array("?...".utf8) + text[end(of: text)...]
  }

  /// Where a URL ends that a folder inside an archive may follow: at the first `!/`, or at `!` as the last byte.
  public static func end(of text: [UInt8]) -> Int {
    text.indices.first { index in
      text[index] == UInt8(ascii: "!") && (index + 1 == text.count || text[index + 1] == UInt8(ascii: "/"))
    } ?? text.count
  }

  /// Whether a colon is one of a URL's scheme or authority, not a separator of a list.
  /// - Parameters:
  ///   - part: what precedes the colon in its part of the list.
  ///   - rest: what follows the colon.
  public static func ownsColon(after part: ArraySlice<UInt8>, before rest: ArraySlice<UInt8>) -> Bool {
    if rest.starts(with: "//".utf8), isScheme(part, among: schemes + ["file"]) { return true }
    guard let colon = part.firstIndex(of: UInt8(ascii: ":")), isScheme(part[..<colon], among: schemes) else {
      return false
    }
    let authority = part[(colon + 1)...].dropFirst(2)
    return part[(colon + 1)...].starts(with: "//".utf8) && !authority.contains(where: endsAuthority)
  }

  /// The path of a `file` URL, decoded; nil for anything else, and for a file of another host.
  public static func localPath(of text: [UInt8]) -> [UInt8]? {
    guard let colon = text.firstIndex(of: UInt8(ascii: ":")), isScheme(text[..<colon], among: ["file"]),
      text[(colon + 1)...].starts(with: "//".utf8)
    else { return nil }
    var rest = text[(colon + 3)...]
    if rest.starts(with: "localhost/".utf8) { rest = rest.dropFirst("localhost".utf8.count) }
    return rest.first == UInt8(ascii: "/") ? decoded(rest) : nil
  }

  private static func decoded(_ text: ArraySlice<UInt8>) -> [UInt8]? {
    var result: [UInt8] = []
    var rest = text
    while let byte = rest.popFirst() {
      if byte != UInt8(ascii: "%") {
        result.append(byte)
        continue
      }
      let digits = rest.prefix(2).map { Character(UnicodeScalar($0)) }
      guard digits.count == 2, let high = digits[0].hexDigitValue, let low = digits[1].hexDigitValue,
        let value = UInt8(exactly: high * 16 + low), value != 0
      else { return nil }
      rest = rest.dropFirst(2)
      result.append(value)
    }
    return result
  }

  // MARK: - Origin

  /// The server that a request goes to (RFC 6454).
  struct Origin: Hashable, Sendable {
    let scheme: [UInt8]
    /// Lowercase, of an IPv6 address with its brackets.
    let host: [UInt8]
    /// That of the scheme if the URL has none.
    let port: UInt16
  }

  /// nil if the port is no number.
  var origin: Origin? {
    guard let authority = Self.authority(of: text) else { return nil }
    let scheme = Self.lowercase(text[..<(authority.lowerBound - 3)])
    let (host, port) = Self.hostAndPort(Self.withoutUser(text[authority]))
    guard let port, !port.isEmpty else {
      return Origin(scheme: scheme, host: host, port: scheme.elementsEqual("https".utf8) ? 443 : 80)
    }
    return Self.portNumber(port).map { Origin(scheme: scheme, host: host, port: $0) }
  }

  /// The host in lowercase, and the port; nil if there is none.
  static func hostAndPort(_ text: ArraySlice<UInt8>) -> (host: [UInt8], port: ArraySlice<UInt8>?) {
    let address = text.first == UInt8(ascii: "[") ? text.firstIndex(of: UInt8(ascii: "]")) : nil
    guard let colon = text[(address ?? text.startIndex)...].firstIndex(of: UInt8(ascii: ":")) else {
      return (lowercase(text), nil)
    }
    return (lowercase(text[..<colon]), text[(colon + 1)...])
  }

  static func portNumber(_ digits: ArraySlice<UInt8>) -> UInt16? {
    ResponseHead.number(digits).flatMap(UInt16.init(exactly:))
  }

  private static func lowercase(_ text: ArraySlice<UInt8>) -> [UInt8] {
    text.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }
  }

  // MARK: - Parts

  private static func isScheme(_ text: ArraySlice<UInt8>, among schemes: [String]) -> Bool {
    let lowercase = lowercase(text)
    return schemes.contains { lowercase.elementsEqual($0.utf8) }
  }

  private static func endsAuthority(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: "/") || byte == UInt8(ascii: "?") || byte == UInt8(ascii: "#")
  }

  /// Where user, host and port are in a text; nil if it is no URL of a web server.
  private static func authority(of text: [UInt8]) -> Range<Int>? {
    guard let colon = text.firstIndex(of: UInt8(ascii: ":")), isScheme(text[..<colon], among: schemes),
      text[(colon + 1)...].starts(with: "//".utf8)
    else { return nil }
    let start = colon + 3
    return start..<(text[start...].firstIndex(where: endsAuthority) ?? text.count)
  }

  private static func withoutUser(_ authority: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    guard let at = authority.lastIndex(of: UInt8(ascii: "@")) else { return authority }
    return authority[(at + 1)...]
  }
}
