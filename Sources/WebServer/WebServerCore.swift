import CMicroHTTPD
import Glibc
import Posix

/// What the threads of all connections share.
final class WebServerCore: Sendable {
  let gate: WebGate
  let handler: any WebHandler

  let shares: ConnectionShares

  init(_ gate: WebGate, _ handler: any WebHandler, _ shares: ConnectionShares) {
    (self.gate, self.handler, self.shares) = (gate, handler, shares)
  }

  /// The user that has connected from an address.
  func user(at address: UnsafePointer<sockaddr>?) -> ConnectionShares.User {
    guard let address, address.pointee.sa_family == sa_family_t(AF_INET) else { return nil }
    let inner = UnsafeRawPointer(address).loadUnaligned(as: sockaddr_in.self)
    return try? LoopbackPeer.user(at: inner, connectedTo: gate.port)
  }

  /// - Throws: 405 for another method; 400 for a malformed path.
  func request(_ connection: OpaquePointer, path: CName, method: CName) throws(WebError) -> WebRequest {
    guard let method = WebRequest.Method(rawValue: String(cString: method)) else {
      throw WebError(405, "only GET, HEAD, POST and PUT are served")
    }
    guard let components = WebText.components(of: [UInt8](bytesOf: path).dropFirst(), isEncoded: true) else {
      throw WebError(400, "the path has empty components, '.' or '..', or an encoded slash or NUL")
    }
    // Used on the connection's thread only, while it lasts.
    let number = UInt(bitPattern: connection)
    let value: @Sendable (MHD_ValueKind, String) -> String? = { kind, name in
      guard let connection = OpaquePointer(bitPattern: number) else { return nil }
      return Microhttpd.functions.lookup_connection_value(connection, kind, name).map { String(cString: $0) }
    }
    return WebRequest(
      method: method, path: components,
      parameter: { name in value(.GET_ARGUMENT_KIND, name).flatMap { WebText.decoded($0.utf8) } },
      header: { name in value(.HEADER_KIND, name) })
  }

  func send(_ response: WebResponse, to connection: OpaquePointer) -> MHD_Result {
    guard let made = make(response.body) else { return .NO }
    defer { Microhttpd.functions.destroy_response(made) }
    for (name, value) in response.allHeaders {
      guard Microhttpd.functions.add_response_header(made, name, value) == .YES else { return .NO }
    }
    return Microhttpd.functions.queue_response(connection, UInt32(response.status), made)
  }

  private func make(_ body: WebResponse.Body) -> OpaquePointer? {
    switch body {
    case .bytes(let bytes):
      return bytes.withUnsafeBytes { buffer in
        Microhttpd.functions.create_response_from_buffer(
          buffer.count, UnsafeMutableRawPointer(mutating: buffer.baseAddress), .RESPMEM_MUST_COPY)
      }
    case .stream(let stream, let count):
      let reader = Unmanaged.passRetained(WebStreamReader(stream)).toOpaque()
      return Microhttpd.functions.create_response_from_callback(
        count ?? .max, Self.blockSize, read, reader,
        { context in
          if let context { Unmanaged<WebStreamReader>.fromOpaque(context).release() }
        })
    }
  }

  private static let blockSize = 64 << 10
}

/// A `MHD_ContentReaderCallback`.
private func read(
  _ context: UnsafeMutableRawPointer?, _ offset: UInt64, _ buffer: UnsafeMutablePointer<CChar>?, _ count: Int
) -> Int {
  guard let context, let buffer else { return -2 }
  let reader = Unmanaged<WebStreamReader>.fromOpaque(context).takeUnretainedValue()
  return reader.read(UnsafeMutableRawBufferPointer(start: buffer, count: count), at: offset)
}
