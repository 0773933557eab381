/// Content that is read piece by piece, on the thread of its connection.
public protocol WebStream: AnyObject, Sendable {
  /// Reads up to `buffer.count` bytes that follow `offset`; may wait.
  /// - Returns: how many; 0 at the end; nil if it fails, which ends the connection.
  func read(into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64) -> Int?
}

/// A response.
public struct WebResponse: Sendable {
  /// What is sent.
  public enum Body: Sendable {
    case bytes([UInt8])
    /// - Parameter count: nil if the stream ends by itself.
    case stream(any WebStream, count: UInt64?)
  }

  /// The status of HTTP.
  public var status: Int
  /// Headers beside those that all responses have.
  public var headers: [(name: String, value: String)]
  /// What is sent.
  public var body: Body

  /// Creates a response.
  public init(status: Int = 200, type: String, headers: [(name: String, value: String)] = [], _ body: Body) {
    self.status = status
    self.headers = [(name: "Content-Type", value: type)] + headers
    self.body = body
  }

  /// A response in JSON.
  public static func json(status: Int = 200, _ text: String) -> WebResponse {
    WebResponse(status: status, type: "application/json", .bytes(Array(text.utf8)))
  }

  /// What every response has. A page that includes this one, or that is included, gets nothing.
  static let commonHeaders = [
    ("X-Content-Type-Options", "nosniff"), ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cross-Origin-Opener-Policy", "same-origin"), ("Referrer-Policy", "no-referrer"),
    ("Cache-Control", "no-store"),
  ]

  /// The policy of responses that have no own: the page may load what this server has, and connect to nothing else.
  static let pagePolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; media-src 'self'; font-src 'self'; "
    + "connect-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

  /// The policy of what layers contain: it runs no scripts, and is of no origin.
  public static let sandboxPolicy =
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'self'"

  /// All headers that are sent.
  var allHeaders: [(name: String, value: String)] {
    let hasPolicy = headers.contains { $0.name == "Content-Security-Policy" }
    return Self.commonHeaders.map { (name: $0.0, value: $0.1) } + headers
      + (hasPolicy ? [] : [(name: "Content-Security-Policy", value: Self.pagePolicy)])
  }
}
