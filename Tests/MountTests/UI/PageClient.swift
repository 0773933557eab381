import Glibc
import Posix
import TestSupport

/// A reply of the server of `bundlefs ui`.
struct PageReply {
  let status: Int
  /// By lowercase name.
  let headers: [String: String]
  let body: [UInt8]

  var text: String { String(decoding: body, as: UTF8.self) }

  /// - Parameter text: all that the server has sent.
  init(_ text: [UInt8]) throws {
    let end = Array("\r\n\r\n".utf8)
    guard let index = text.indices.first(where: { text[$0...].starts(with: end) }) else {
      throw TestFailure("no reply: \(String(decoding: text, as: UTF8.self))")
    }
    let lines = String(decoding: text[..<index], as: UTF8.self).split(separator: "\r\n")
    guard let status = lines.first?.split(separator: " ").dropFirst().first.flatMap({ Int($0) }) else {
      throw TestFailure("no status: \(lines)")
    }
    var headers: [String: String] = [:]
    for line in lines.dropFirst() {
      guard let colon = line.firstIndex(of: ":") else { continue }
      headers[line[..<colon].lowercased()] = String(line[line.index(after: colon)...].drop { $0 == " " })
    }
    let content = text[(index + end.count)...]
    body = headers["transfer-encoding"] == "chunked" ? Self.joined(content) : Array(content)
    (self.status, self.headers) = (status, headers)
  }

  /// The content of chunks, each after a line with its size.
  private static func joined(_ chunks: ArraySlice<UInt8>) -> [UInt8] {
    var (rest, content) = (chunks, [UInt8]())
    while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
      let line = String(decoding: rest[..<end], as: UTF8.self).prefix { $0.isHexDigit }
      let count = Int(line, radix: 16) ?? 0
      if count == 0 { break }
      content += rest[(end + 1)...].prefix(count)
      rest = rest[(end + 1)...].dropFirst(count + 2)
    }
    return content
  }
}

/// A browser as the server sees it: bytes on a socket.
struct PageClient {
  let port: UInt16
  /// `NAME=VALUE`.
  var cookie: String?
  /// `/NAME`: the secret folder of all addresses.
  var folder = ""

  /// Headers that every request of a page has.
  var usual: [(String, String)] {
    [("Host", "127.0.0.1:\(port)")] + (cookie.map { [("Cookie", $0)] } ?? [])
  }

  /// Headers of a request that changes something.
  func changing(_ type: String = "application/json") -> [(String, String)] {
    usual + [("Origin", "http://127.0.0.1:\(port)"), ("Content-Type", type)]
  }

  /// - Parameter headers: instead of the usual ones.
  func send(
    _ method: String, _ path: String, _ headers: [(String, String)]? = nil, _ body: [UInt8] = []
  ) throws -> PageReply {
    let connection = try PageConnection(port)
    try connection.send(method, address(path), headers ?? usual, body)
    return try PageReply(connection.readToEnd())
  }

  /// - Parameter path: relative to the folder.
  func address(_ path: String) -> String { folder + (path.hasPrefix("/") ? "" : "/") + path }

  func get(_ path: String) throws -> PageReply { try send("GET", path) }

  func post(_ path: String, _ json: String) throws -> PageReply {
    try send("POST", path, changing(), Array(json.utf8))
  }

  func put(_ path: String, _ content: [UInt8]) throws -> PageReply {
    try send("PUT", path, changing("application/octet-stream"), content)
  }
}

/// A connection for one request.
final class PageConnection {
  private let socket: CInt

  init(_ port: UInt16) throws {
    socket = Glibc.socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    let result = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    if result != 0 { throw TestFailure("connect: \(Errno.current)") }
    var limit = timeval(tv_sec: 30, tv_usec: 0)
    setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
  }

  deinit { close(socket) }

  /// - Parameter length: the `Content-Length`; nil for that of the body.
  func send(
    _ method: String, _ path: String, _ headers: [(String, String)], _ body: [UInt8], length: Int? = nil
  ) throws {
    var lines = ["\(method) \(path) HTTP/1.1", "Connection: close"]
    lines += headers.map { "\($0): \($1)" }
    if method == "POST" || method == "PUT" { lines.append("Content-Length: \(length ?? body.count)") }
    let text = Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8) + body
    var sent = 0
    while sent < text.count {
      let count = text[sent...].withUnsafeBytes {
        Glibc.send(socket, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL))
      }
      // The server may have refused it by now.
      if count <= 0 { return }
      sent += count
    }
  }

  /// Returns what has come when the server closes the connection.
  func readToEnd() throws -> [UInt8] { try read { _ in false } }

  /// Returns what has come once a text is in it.
  func read(until text: String) throws -> String {
    String(decoding: try read { String(decoding: $0, as: UTF8.self).contains(text) }, as: UTF8.self)
  }

  /// Acts again and again until a text has come.
  func read(until text: String, acting act: () throws -> Void) throws {
    var polled = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
    let hasCome = { (text: [UInt8], part: String) in String(decoding: text, as: UTF8.self).contains(part) }
    let end = Clock.now + 60
    while !hasCome(received, text) {
      if Clock.now > end { throw TestFailure("no '\(text)': \(String(decoding: received, as: UTF8.self))") }
      try act()
      if poll(&polled, 1, 50) > 0 { try receive() }
    }
  }

  private var received: [UInt8] = []

  private func read(until isEnough: ([UInt8]) -> Bool) throws -> [UInt8] {
    while !isEnough(received), try receive() {}
    return received
  }

  /// Receives what comes next.
  /// - Returns: whether there is more.
  @discardableResult
  private func receive() throws -> Bool {
    var buffer = [UInt8](repeating: 0, count: 64 << 10)
    let count = recv(socket, &buffer, buffer.count, 0)
    if count == 0 || (count < 0 && errno == ECONNRESET) { return false }
    if count < 0 {
      throw TestFailure("recv: \(Errno.current): \(String(decoding: received, as: UTF8.self))")
    }
    received += buffer[..<count]
    return true
  }
}
