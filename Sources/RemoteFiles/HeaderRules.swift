/// Headers for requests, and the hosts that they are for, as a file has them: a header in each line, `[HOST]` or
/// `[HOST:PORT]` before those of one host alone, `#` before a comment.
struct HeaderRules: Equatable, Sendable {
  private struct Section: Equatable, Sendable {
    /// Lowercase; nil for all hosts of layers.
    var host: [UInt8]?
    /// nil for any.
    var port: UInt16?
    /// Whole lines.
    var headers: [[UInt8]] = []
  }

  private var sections = [Section()]

  /// What is wrong with a text, and in which line, from 1 on.
  struct Mistake: Error, Equatable {
    let line: Int
    let reason: String
  }

  /// What bundlefs itself sends, or what frames a request.
  private static let reserved: Set<String> = [
    "accept-encoding", "connection", "content-length", "expect", "host", "if-match", "if-modified-since",
    "if-none-match", "if-range", "if-unmodified-since", "keep-alive", "range", "te", "trailer",
    "transfer-encoding", "upgrade",
  ]

  /// No headers.
  init() {}

  init(_ text: [UInt8]) throws(Mistake) {
    for (index, line) in text.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
      .enumerated()
    {
      let content = Self.trimmed(line)
      if content.isEmpty || content.first == UInt8(ascii: "#") { continue }
      if content.first == UInt8(ascii: "[") {
        guard let section = Self.section(content) else {
          throw Mistake(line: index + 1, reason: "'[HOST]' or '[HOST:PORT]' is expected")
        }
        sections.append(section)
      } else {
        sections[sections.count - 1].headers.append(try Self.header(content, index + 1))
      }
    }
  }

  /// The headers that are sent to a host: in the order of the file.
  func headers(for origin: RemoteURL.Origin) -> [[UInt8]] {
    let matching = sections.filter { section in
      (section.host ?? origin.host) == origin.host && (section.port ?? origin.port) == origin.port
    }
    return matching.flatMap(\.headers)
  }

  /// - Returns: nil if it is no section.
  private static func section(_ line: ArraySlice<UInt8>) -> Section? {
    guard line.last == UInt8(ascii: "]"), line.count > 2 else { return nil }
    let (host, port) = RemoteURL.hostAndPort(line.dropFirst().dropLast())
    if host.isEmpty || host.contains(where: { $0 <= 0x20 || $0 == UInt8(ascii: "/") }) { return nil }
    guard let port else { return Section(host: host) }
    guard let number = RemoteURL.portNumber(port) else { return nil }
    return Section(host: host, port: number)
  }

  private static func header(_ line: ArraySlice<UInt8>, _ number: Int) throws(Mistake) -> [UInt8] {
    guard let colon = line.firstIndex(of: UInt8(ascii: ":")), colon > line.startIndex,
      line[..<colon].allSatisfy(isTokenByte)
    else { throw Mistake(line: number, reason: "'NAME: VALUE' is expected") }
    let name = String(decoding: line[..<colon], as: UTF8.self)
    if reserved.contains(name.lowercased()) {
      throw Mistake(line: number, reason: "bundlefs itself sets '\(name)'")
    }
    let value = trimmed(line[(colon + 1)...])
    let isText = value.allSatisfy { $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }
    if value.isEmpty || !isText {
      throw Mistake(line: number, reason: "the value of '\(name)' is empty or has a control character")
    }
    return Array(line[..<colon]) + Array(": ".utf8) + Array(value)
  }

  /// A byte of a token (RFC 9110, section 5.6.2).
  private static func isTokenByte(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
    default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
    }
  }

  private static func trimmed(_ text: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    text.trimming { $0 == 0x20 || $0 == 0x09 || $0 == 0x0D }
  }
}
