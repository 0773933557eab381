/// A URL, split by RFC 3986 and then percent-decoded.
///
/// The components are the host, if present, and the non-empty segments of the path. The user is validated and
/// ignored, and the port is no component; `.` and `..` are ordinary components. An IPv6 host keeps its brackets. Query
/// parameters are separated by `&`; `name` equals `name=`, and `+` is a plus sign.
///
/// Spaces and control characters must be percent-encoded. Other characters that RFC 3986 excludes
/// (`"<>[\]^{|}`, the backquote, non-ASCII) are accepted because people type them.
public struct RouteURL: Sendable {
  /// The maximum size of a URL, and of any line of the control file, in bytes.
  public static let maxLength = 64 * 1024
  /// The maximum number of components in a URL or a pattern.
  public static let maxComponents = 1024
  /// The maximum number of query parameters in a URL or a pattern.
  public static let maxParameters = 1024

  /// The URL as given, percent-encoded.
  public let text: [UInt8]
  /// Whether the first component is the host.
  public let hasHost: Bool
  /// A copy of `text` with the scheme in lower case and each component and parameter decoded in place.
  let decoded: [UInt8]
  let schemeRange: ByteRange
  let componentRanges: [ByteRange]
  let parameters: [Parameter]
  let fragmentRange: ByteRange?
  private let portRange: ByteRange?
  /// The offset of the first component or parameter that is not UTF-8.
  private let firstNonUTF8: Int?

  struct Parameter: Hashable {
    var name: ByteRange
    var value: ByteRange
    /// `name=value` in `text`.
    let written: ByteRange
  }

  /// Parses a URL.
  /// - Throws: EINVAL with the offset; E2BIG.
  public init(_ text: [UInt8]) throws(RoutingError) {
    guard text.count <= Self.maxLength else {
      throw RoutingError(.tooLong, "a URL is at most \(Self.maxLength) bytes long")
    }
    var parser = URLParser()
    try parser.parse(text.span)
    var decoded = text
    if parser.schemeHasCapitals { Self.lower(&decoded, parser.scheme) }
    if parser.hasPercentSequences { Self.decode(&decoded, &parser) }
    self.text = text
    hasHost = parser.hasHost
    schemeRange = parser.scheme
    componentRanges = parser.components
    parameters = parser.parameters
    fragmentRange = parser.fragment
    portRange = parser.port
    firstNonUTF8 = parser.isASCII ? nil : Self.firstNonUTF8(in: decoded, parser)
    self.decoded = decoded
  }

  /// The scheme in lower case.
  public var scheme: String { text(of: schemeRange) }

  /// Whether this is the scheme; the name is in lower case.
  public func isScheme(_ name: String) -> Bool {
    name.utf8.count == schemeRange.offsets.count && decoded[schemeRange.offsets].elementsEqual(name.utf8)
  }

  /// The port; nil without one, or if it does not fit.
  public var port: Int? { portRange.flatMap { Int(String(decoding: text[$0.offsets], as: UTF8.self)) } }

  /// The components, decoded.
  public var components: [[UInt8]] { componentRanges.map { Array(decoded[$0.offsets]) } }

  /// The host, decoded; nil without one.
  public var host: [UInt8]? { hasHost ? componentRanges.first.map { Array(decoded[$0.offsets]) } : nil }

  /// The non-empty segments of the path, decoded.
  public var segments: [[UInt8]] {
    (hasHost ? componentRanges.dropFirst() : componentRanges[...]).map { Array(decoded[$0.offsets]) }
  }

  /// The value of the first query parameter with a name, decoded; nil if there is none.
  public func parameter(_ name: String) -> [UInt8]? {
    parameters.first { decoded[$0.name.offsets].elementsEqual(name.utf8) }.map {
      Array(decoded[$0.value.offsets])
    }
  }

  /// The query parameters in their order, decoded.
  public var query: [(name: [UInt8], value: [UInt8])] {
    parameters.map { (Array(decoded[$0.name.offsets]), Array(decoded[$0.value.offsets])) }
  }

  /// The fragment, percent-encoded; nil if it is absent or empty.
  public var fragment: String? { fragmentRange.map { String(escaping: Array(text[$0.offsets])) } }

  /// Checks that components and query are UTF-8. Routes bind strings, so a URL must pass before it is matched;
  /// file names need not.
  /// - Throws: EINVAL with the offset.
  public func requireUTF8() throws(RoutingError) {
    if let firstNonUTF8 { throw .malformed("this is not UTF-8", at: firstNonUTF8) }
  }

  /// A decoded range that is known to be UTF-8.
  func text(of range: ByteRange) -> String {
    decoded.withUnsafeBufferPointer { String(decoding: $0[range.offsets], as: UTF8.self) }
  }

  private static func lower(_ text: inout [UInt8], _ range: ByteRange) {
    for index in range.offsets where text[index] < UInt8(ascii: "a") && text[index] >= UInt8(ascii: "A") {
      if text[index] <= UInt8(ascii: "Z") { text[index] += 32 }
    }
  }

  private static func decode(_ text: inout [UInt8], _ parser: inout URLParser) {
    for index in parser.components.indices {
      parser.components[index] = PercentCoding.decode(&text, parser.components[index])
    }
    for index in parser.parameters.indices {
      parser.parameters[index].name = PercentCoding.decode(&text, parser.parameters[index].name)
      parser.parameters[index].value = PercentCoding.decode(&text, parser.parameters[index].value)
    }
  }

  private static func firstNonUTF8(in text: [UInt8], _ parser: URLParser) -> Int? {
    let all = parser.components + parser.parameters.flatMap { [$0.name, $0.value] }
    return all.first { firstInvalidUTF8(in: text.span.extracting($0.offsets)) != nil }.map { Int($0.start) }
  }
}

extension RouteURL: Hashable {
  /// Compares the texts.
  public static func == (left: RouteURL, right: RouteURL) -> Bool { left.text == right.text }

  /// Hashes the text.
  public func hash(into hasher: inout Hasher) { hasher.combine(text) }
}

/// A range of bytes in a URL; half the size of `Range<Int>`.
struct ByteRange: Hashable {
  let start: UInt32
  let end: UInt32

  init(_ range: Range<Int>) {
    start = UInt32(truncatingIfNeeded: range.lowerBound)
    end = UInt32(truncatingIfNeeded: range.upperBound)
  }

  var offsets: Range<Int> { Int(start)..<Int(end) }
  var isEmpty: Bool { start == end }
}
