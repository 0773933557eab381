/// A URL, taken apart by RFC 3986: split first, percent-decoded afterwards.
///
/// Its components are the host, if it has one, and then the path's segments; empty ones are dropped. The user
/// and the port are checked and otherwise left out, and `.` and `..` are components like any other. An IPv6
/// host keeps its brackets. Query parameters are divided by `&`, and `name` is the same as `name=`; a `+` is a
/// plus sign.
///
/// Spaces and control characters must be percent-encoded. Other characters that RFC 3986 wants encoded
/// (`"<>[\]^{|}`, the backquote, all beyond ASCII) stand for themselves: people type them.
public struct RouteURL: Sendable {
  /// The longest text of a URL, as of any line of the control file.
  public static let maxLength = 64 * 1024
  /// The most components that a URL or a pattern has.
  public static let maxComponents = 1024
  /// The most query parameters that a URL or a pattern has.
  public static let maxParameters = 1024

  /// The URL as it was written.
  public let text: [UInt8]
  /// Whether the first component is the host.
  public let hasHost: Bool
  /// The text again, each piece decoded where it starts, the scheme in lower case.
  let decoded: [UInt8]
  let schemePiece: Piece
  let pieces: [Piece]
  let parameters: [Parameter]
  let fragmentPiece: Piece?
  /// Where the first component or parameter begins that is no UTF-8.
  private let notText: Int?

  /// A parameter of the query.
  struct Parameter: Hashable {
    var name: Piece
    var value: Piece
    /// Both, as they were written.
    let written: Piece
  }

  /// Takes a URL apart.
  /// - Throws: EINVAL with the place, or E2BIG.
  public init(_ text: [UInt8]) throws(RoutingError) {
    guard text.count <= Self.maxLength else {
      throw RoutingError(.tooLong, "a URL is at most \(Self.maxLength) bytes long")
    }
    var reader = URLParser()
    try reader.read(text.span)
    var decoded = text
    if reader.schemeHasCapitals { Self.lower(&decoded, reader.scheme) }
    if reader.hasEscapes { Self.decode(&decoded, &reader) }
    self.text = text
    hasHost = reader.hasHost
    schemePiece = reader.scheme
    pieces = reader.components
    parameters = reader.parameters
    fragmentPiece = reader.fragment
    notText =
      reader.isASCII
      ? nil : Self.firstNotText(in: decoded, pieces: reader.components, parameters: reader.parameters)
    self.decoded = decoded
  }

  /// The scheme in lower case.
  public var scheme: String { text(of: schemePiece) }

  /// The components, decoded.
  public var components: [[UInt8]] { pieces.map { Array(decoded[$0.range]) } }

  /// The host, decoded; nil without one.
  public var host: [UInt8]? { hasHost ? pieces.first.map { Array(decoded[$0.range]) } : nil }

  /// The path's segments, decoded; empty ones are dropped.
  public var segments: [[UInt8]] {
    (hasHost ? pieces.dropFirst() : pieces[...]).map { Array(decoded[$0.range]) }
  }

  /// The value of the first query parameter of a name, decoded; nil without one.
  public func parameter(_ name: String) -> [UInt8]? {
    parameters.first { decoded[$0.name.range].elementsEqual(name.utf8) }.map {
      Array(decoded[$0.value.range])
    }
  }

  /// The fragment as it was written; nil if there is none, or nothing in it.
  public var fragment: String? { fragmentPiece.map { String(escaping: Array(text[$0.range])) } }

  /// Routes bind text, so a URL that is to be matched must be UTF-8 where it can be bound: in its components
  /// and its query. The names of files need not be.
  public func requireUTF8() throws(RoutingError) {
    if let notText { throw .malformed("what begins here is not UTF-8", at: notText) }
  }

  /// A decoded piece that is known to be text.
  func text(of piece: Piece) -> String {
    decoded.withUnsafeBufferPointer { String(decoding: $0[piece.range], as: UTF8.self) }
  }

  private static func lower(_ text: inout [UInt8], _ piece: Piece) {
    for place in piece.range where text[place] < UInt8(ascii: "a") && text[place] >= UInt8(ascii: "A") {
      if text[place] <= UInt8(ascii: "Z") { text[place] += 32 }
    }
  }

  private static func decode(_ text: inout [UInt8], _ reader: inout URLParser) {
    for place in reader.components.indices {
      reader.components[place] = PercentCoding.decode(&text, reader.components[place])
    }
    for place in reader.parameters.indices {
      reader.parameters[place].name = PercentCoding.decode(&text, reader.parameters[place].name)
      reader.parameters[place].value = PercentCoding.decode(&text, reader.parameters[place].value)
    }
  }

  private static func firstNotText(in text: [UInt8], pieces: [Piece], parameters: [Parameter]) -> Int? {
    let all = pieces + parameters.flatMap { [$0.name, $0.value] }
    return all.first { firstInvalid(in: text.span.extracting($0.range)) != nil }.map { Int($0.start) }
  }
}

extension RouteURL: Hashable {
  /// Whether they were written alike.
  public static func == (left: RouteURL, right: RouteURL) -> Bool { left.text == right.text }

  /// By what was written.
  public func hash(into hasher: inout Hasher) { hasher.combine(text) }
}

/// A part of a text that is at most ``RouteURL/maxLength`` long.
struct Piece: Hashable {
  let start: UInt32
  let end: UInt32

  init(_ range: Range<Int>) {
    start = UInt32(truncatingIfNeeded: range.lowerBound)
    end = UInt32(truncatingIfNeeded: range.upperBound)
  }

  var range: Range<Int> { Int(start)..<Int(end) }
  var isEmpty: Bool { start == end }
}
