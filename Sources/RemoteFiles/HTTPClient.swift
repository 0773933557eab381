#if Networking
import CCurl
import CLibrary
import Posix

/// Sends requests for one URL by libcurl, which is loaded with the first client. Each thread has a connection of its own.
final class HTTPClient: Sendable {
  let url: RemoteURL
  private let headers: HeadersFile?
  private let library: bundlefs_curl
  private let idle = Locked<[Connection]>([])

  private static let library: bundlefs_curl? = {
    var library = bundlefs_curl()
    return bundlefs_curl_load(&library) != 0 ? library : nil
  }()
  private static let mostIdle = 4
  private static let mostRedirects = 10
  /// Milliseconds.
  private static let connectTimeout = 10_000

  /// A handle of libcurl with its connections. A process that was forked must not use those of its parent.
  private struct Connection: @unchecked Sendable {
    let handle: UnsafeMutableRawPointer
    let process: pid_t
  }

  /// - Parameter headers: of the user's own.
  /// - Throws: `noLibrary`.
  init(_ url: RemoteURL, _ headers: HeadersFile?) throws(RemoteFault) {
    guard let library = Self.library else { throw .noLibrary }
    (self.url, self.headers, self.library) = (url, headers, library)
  }

  deinit {
    let left = idle.withLock { $0 }
    for connection in left where connection.process == getpid() { library.easy_cleanup(connection.handle) }
  }

  /// Sends a GET, also to where redirects lead.
  /// - Parameters:
  ///   - fields: headers as whole lines, without line ends.
  ///   - exchange: receives the answer.
  /// - Throws: `unreachable`; `headers`; what the exchange has ended the request with.
  func get(_ fields: [[UInt8]], _ exchange: Exchange) throws(RemoteFault) {
    let connection = try takeConnection()
    defer { putBack(connection) }
    var next: RemoteURL? = url
    var asked = 0
    while let url = next {
      next = nil
      if asked > Self.mostRedirects { throw .violation("too many redirects") }
      asked += 1
      // Of a part of what is compressed nothing could be read.
      let all = fields + [Array("Accept-Encoding: identity".utf8)] + (try ownHeaders(for: url))
      perform(url, all, exchange, connection)
      if exchange.failure == nil, let target = redirect(of: connection) {
        next = RemoteURL(target)
        if next == nil { throw .violation("a redirect to what is no URL with http or https") }
      }
    }
    exchange.end()
    if let failure = exchange.failure { throw failure }
  }

  /// The user's headers. They are secrets of the server that the layer's URL names: no other one gets them.
  private func ownHeaders(for url: RemoteURL) throws(RemoteFault) -> [[UInt8]] {
    guard let headers, let origin = url.origin, origin == self.url.origin else { return [] }
    return try headers.headers(for: origin)
  }

  private func perform(
    _ url: RemoteURL, _ headers: [[UInt8]], _ exchange: Exchange, _ connection: Connection
  ) {
    var list: UnsafeMutablePointer<curl_slist>?
    defer { library.slist_free_all(list) }
    for header in headers {
      list = header.withCString { library.slist_append(list, $0) } ?? list
    }
    let result = url.text.withCString { url in
      "bundlefs".withCString { agent in
        var request = bundlefs_curl_request(
          url: url, headers: list, user_agent: agent, connect_timeout: Self.connectTimeout,
          header: Self.onHeader, body: Self.onBody, progress: Self.onProgress,
          context: Unmanaged.passUnretained(exchange).toOpaque())
        return withUnsafePointer(to: library) { bundlefs_curl_perform($0, connection.handle, &request) }
      }
    }
    if result != CURLE_OK, exchange.failure == nil {
      let reason = library.easy_strerror(result).map { String(cString: $0) } ?? "error"
      exchange.failure = result == CURLE_PEER_FAILED_VERIFICATION ? .untrusted(reason) : .unreachable(reason)
    }
  }

  /// Where the last answer leads; nil if it is no redirect.
  private func redirect(of connection: Connection) -> [UInt8]? {
    withUnsafePointer(to: library) { bundlefs_curl_redirect($0, connection.handle) }.map { target in
      Array(UnsafeRawBufferPointer(start: target, count: strlen(target)))
    }
  }

  private func takeConnection() throws(RemoteFault) -> Connection {
    let own = getpid()
    let present = idle.withLock { idle in
      idle.removeAll { $0.process != own }
      return idle.popLast()
    }
    if let present { return present }
    guard let handle = library.easy_init() else { throw .local(.noMemory) }
    return Connection(handle: handle, process: own)
  }

  private func putBack(_ connection: Connection) {
    let isKept = idle.withLock { idle in
      if idle.count >= Self.mostIdle { return false }
      idle.append(connection)
      return true
    }
    if !isKept { library.easy_cleanup(connection.handle) }
  }

  private static let onHeader: bundlefs_curl_data = { bytes, size, count, context in
    guard let bytes, let context else { return 0 }
    let line = UnsafeRawBufferPointer(start: bytes, count: size * count)
    let isTaken = Unmanaged<Exchange>.fromOpaque(context)._withUnsafeGuaranteedRef { $0.addHeader(line) }
    return isTaken ? size * count : 0
  }

  private static let onBody: bundlefs_curl_data = { bytes, size, count, context in
    guard let bytes, let context else { return 0 }
    let part = UnsafeRawBufferPointer(start: bytes, count: size * count)
    let isTaken = Unmanaged<Exchange>.fromOpaque(context)._withUnsafeGuaranteedRef { $0.addBody(part) }
    return isTaken ? size * count : 0
  }

  private static let onProgress: bundlefs_curl_progress = { context, _, _, _, _ in
    guard let context else { return 1 }
    return Unmanaged<Exchange>.fromOpaque(context)._withUnsafeGuaranteedRef { $0.isLate } ? 1 : 0
  }
}

extension [UInt8] {
  fileprivate func withCString<Result>(_ body: (UnsafePointer<CChar>) -> Result) -> Result {
    (self + [0]).withUnsafeBytes {
      body($0.baseAddress.unsafelyUnwrapped.assumingMemoryBound(to: CChar.self))
    }
  }
}
#else
/// No client: the package is built without its trait `Networking`, and with that without libcurl's header.
final class HTTPClient: Sendable {
  /// - Throws: `leftOut`.
  init(_ url: RemoteURL, _ headers: HeadersFile?) throws(RemoteFault) { throw .leftOut }

  func get(_ fields: [[UInt8]], _ exchange: Exchange) throws(RemoteFault) { throw .leftOut }
}
#endif
