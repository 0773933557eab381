/// A request: its head. The body, if there is one, arrives later.
public struct WebRequest: Sendable {
  /// The methods that are served.
  public enum Method: String, Sendable {
    case get = "GET"
    case head = "HEAD"
    case post = "POST"
    case put = "PUT"

    /// Whether it may change something.
    public var isUnsafe: Bool { self == .post || self == .put }
  }

  /// The method.
  public let method: Method
  /// The components of the path, decoded. None is empty, `.` or `..`, and none contains a slash or NUL.
  public internal(set) var path: [[UInt8]]
  /// The value of a parameter of the query, decoded; nil without it.
  public let parameter: @Sendable (_ name: String) -> [UInt8]?
  /// The value of a header; nil without it.
  public let header: @Sendable (_ name: String) -> String?
}

/// Why a request fails.
public struct WebError: Error, Sendable {
  /// The status of HTTP.
  public let status: Int
  /// A sentence for the user.
  public let message: String

  /// Creates an error.
  public init(_ status: Int, _ message: String) { (self.status, self.message) = (status, message) }
}

/// Percent-encoded text (RFC 3986).
public enum WebText {
  /// The bytes that a text encodes.
  /// - Returns: nil for a malformed sequence, and for NUL, which no name contains.
  public static func decoded(_ text: some Sequence<UInt8>) -> [UInt8]? {
    var bytes: [UInt8] = []
    var rest = text.makeIterator()
    while let byte = rest.next() {
      var value = byte
      if byte == UInt8(ascii: "%") {
        guard let high = rest.next().flatMap(digit), let low = rest.next().flatMap(digit) else { return nil }
        value = high << 4 | low
      }
      if value == 0 { return nil }
      bytes.append(value)
    }
    return bytes
  }

  private static func digit(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
    default: nil
    }
  }

  /// The components of a path whose slashes separate them.
  /// - Parameter isEncoded: whether each is percent-encoded.
  /// - Returns: nil if one is empty, `.` or `..`, or contains a slash or NUL.
  public static func components(of path: some Collection<UInt8>, isEncoded: Bool) -> [[UInt8]]? {
    if path.isEmpty { return [] }
    var components: [[UInt8]] = []
    for part in path.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false) {
      guard let name = isEncoded ? decoded(part) : Array(part), !name.isEmpty,
        !name.elementsEqual(".".utf8), !name.elementsEqual("..".utf8),
        !name.contains(UInt8(ascii: "/")), !name.contains(0)
      else { return nil }
      components.append(name)
    }
    return components
  }
}
