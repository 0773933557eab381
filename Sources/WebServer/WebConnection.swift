import CMicroHTTPD
import Posix

/// A request as libmicrohttpd presents it, call by call, on one thread.
final class WebConnection {
  private let server: WebServerCore
  private var exchange: (any WebExchange)?

  init(_ server: WebServerCore) { self.server = server }

  /// Answers the head of a request, or begins to.
  func begin(_ connection: OpaquePointer, path: CName, method: CName) -> MHD_Result {
    do throws(WebError) {
      let request = try server.request(connection, path: path, method: method)
      switch try server.gate.passage(of: request) {
      case .answer(let response):
        if let user = WebUser.of(connection) { server.shares.trust(user.id) }
        return server.send(response, to: connection)
      case .request(let request): exchange = try server.handler.exchange(for: request)
      }
      return .YES
    } catch {
      return server.send(server.handler.response(for: error), to: connection)
    }
  }

  /// Takes a part of the body; `count` becomes what was not taken.
  func receive(
    _ bytes: UnsafePointer<CChar>?, _ count: UnsafeMutablePointer<Int>, _ connection: OpaquePointer
  ) -> MHD_Result {
    let part = UnsafeRawBufferPointer(start: bytes, count: count.pointee)
    count.pointee = 0
    do throws(WebError) {
      try exchange?.receive(part)
      return .YES
    } catch {
      exchange = nil
      // A response can be sent only before or after the body: the rest of it is taken and dropped.
      failure = error
      return .YES
    }
  }

  private var failure: WebError?

  /// Answers the request, whose body is complete.
  func end(_ connection: OpaquePointer) -> MHD_Result {
    do throws(WebError) {
      if let failure { throw failure }
      guard let exchange else { return .NO }
      return server.send(try exchange.response(), to: connection)
    } catch {
      return server.send(server.handler.response(for: error), to: connection)
    }
  }
}

/// Passes a stream to libmicrohttpd.
final class WebStreamReader {
  private let stream: any WebStream

  init(_ stream: any WebStream) { self.stream = stream }

  func read(_ buffer: UnsafeMutableRawBufferPointer, at offset: UInt64) -> Int {
    switch stream.read(into: buffer, at: offset) {
    case nil: Self.failed
    case 0: Self.ended
    case let count?: count
    }
  }

  /// `MHD_CONTENT_READER_END_OF_STREAM` and `MHD_CONTENT_READER_END_WITH_ERROR`, which are macros with casts.
  private static let (ended, failed) = (-1, -2)
}
