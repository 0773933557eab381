import Posix

/// Lets only the browser in that was given the address with the token, and only for what this server's own page asks.
struct WebGate: Sendable {
  /// What becomes of a request.
  enum Passage {
    /// It brings the token, and has this answer.
    case answer(WebResponse)
    /// It may pass, with the path below the folder.
    case request(WebRequest)
  }

  /// The secret in the address, which counts once: other programs of the user, and the lists of processes, can show it.
  let token: String
  /// The secret in the cookie.
  private let session: String
  /// The secret folder of all addresses. Browsers send a cookie to all ports of a host, so that servers of other users
  /// may learn the session; they do not learn this.
  private let folder: String
  let port: UInt16
  private let isTokenUsed = Locked(false)

  init(port: UInt16) {
    self.port = port
    (token, session, folder) = (Self.secret(), Self.secret(), Self.secret())
  }

  private static func secret() -> String {
    (0..<4).map { _ in
      let digits = String(UInt64.random(in: 0...(.max)), radix: 16)
      return String(repeating: "0", count: 16 - digits.count) + digits
    }.joined()
  }

  /// Of this server alone.
  private var cookie: String { "bundlefs-\(port)" }

  /// Checks a request.
  func passage(of request: WebRequest) throws(WebError) -> Passage {
    let host = try checkedHost(request)
    if request.path.isEmpty, request.method == .get, let given = request.parameter("token") {
      return .answer(try entrance(given))
    }
    let isInside = Self.areEqual(request.path.first ?? [], Array(folder.utf8))
    guard hasCookie(request.header("Cookie") ?? ""), isInside else { throw Self.unknown }
    try checkSource(request)
    if request.method.isUnsafe { try checkChange(request, host) }
    var inner = request
    inner.path.removeFirst()
    return .request(inner)
  }

  private static let unknown = WebError(
    403, "this browser has not been let in: open the address that 'bundlefs ui' has printed")

  /// Gives the browser the cookie. The browser sends it with what this page asks for, but not with a redirect: another
  /// program or page has led the browser here.
  private func entrance(_ given: [UInt8]) throws(WebError) -> WebResponse {
    guard Self.areEqual(given, Array(token.utf8)) else { throw Self.unknown }
    let isFirst = isTokenUsed.withLock { isUsed in
      defer { isUsed = true }
      return !isUsed
    }
    guard isFirst else {
      throw WebError(403, "this address has been opened already, and works once: start 'bundlefs ui' again")
    }
    let value = "\(cookie)=\(session); HttpOnly; SameSite=Strict; Path=/\(folder)"
    return WebResponse(
      type: "text/html; charset=utf-8", headers: [(name: "Set-Cookie", value: value)],
      .bytes(Array(WebPageLink.page(to: "/\(folder)/index.html").utf8)))
  }

  /// A name of another host that leads here is one that its owner has pointed here.
  private func checkedHost(_ request: WebRequest) throws(WebError) -> String {
    let host = request.header("Host") ?? ""
    for name in ["127.0.0.1", "localhost"] {
      // Browsers leave out the port of the scheme.
      if host == "\(name):\(port)" || (port == 80 && host == name) { return host }
    }
    throw WebError(403, "the page is served as 127.0.0.1:\(port) only")
  }

  private func hasCookie(_ header: String) -> Bool {
    let expected = Array("\(cookie)=\(session)".utf8)
    return header.utf8.split(separator: UInt8(ascii: ";")).contains { part in
      Self.areEqual(Array(part.drop { $0 == UInt8(ascii: " ") }), expected)
    }
  }

  /// In the same time wherever they differ.
  private static func areEqual(_ given: [UInt8], _ expected: [UInt8]) -> Bool {
    if given.count != expected.count { return false }
    var difference: UInt8 = 0
    for (first, second) in zip(given, expected) { difference |= first ^ second }
    return difference == 0
  }

  /// Pages of other ports are of the same site, so their requests have the cookie.
  private func checkSource(_ request: WebRequest) throws(WebError) {
    let source = request.header("Sec-Fetch-Site") ?? "none"
    if source == "same-origin" || source == "none" { return }
    throw WebError(403, "another page has sent the request")
  }

  private func checkChange(_ request: WebRequest, _ host: String) throws(WebError) {
    guard request.header("Origin") == "http://\(host)" else {
      throw WebError(403, "the request does not come from this server's page")
    }
    // What forms can send needs no permission of this server.
    let type = request.header("Content-Type").map { $0.prefix { $0 != ";" } } ?? ""
    if type == (request.method == .put ? "application/octet-stream" : "application/json") { return }
    throw WebError(415, "the Content-Type must be application/json, or application/octet-stream with PUT")
  }
}
