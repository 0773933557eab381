import CMicroHTTPD
import Glibc
import Posix

/// A web server for the user of this computer, on 127.0.0.1 only.
public final class WebServer: Sendable {
  /// Why there is no server.
  public enum Failure: Error {
    /// libmicrohttpd is not installed, or lacks a function.
    case missingLibrary
    case failed(Errno)
  }

  /// The address with the token, which can be opened once.
  public let address: String
  private let core: WebServerCore
  private let daemon: Locked<OpaquePointer?>

  /// Starts to serve.
  /// - Parameters:
  ///   - port: 0 for a free one.
  ///   - handler: is passed the requests, each on the thread of its connection.
  public init(port: UInt16 = 0, _ handler: any WebHandler) throws(Failure) {
    guard Microhttpd.isInstalled else { throw .missingLibrary }
    let listener: LoopbackListener
    do throws(Errno) { listener = try LoopbackListener(port: port) } catch { throw .failed(error) }
    let gate = WebGate(port: listener.port)
    address = "http://127.0.0.1:\(listener.port)/?token=\(gate.token)"
    core = WebServerCore(gate, handler, ConnectionShares(user: geteuid()))
    var limits = bundlefs_microhttpd_limits(
      connections: UInt32(ConnectionShares.all), timeout_seconds: 120, connection_memory: 64 << 10)
    let socket = listener.release()
    var callbacks = bundlefs_microhttpd_callbacks(
      accept: mayConnect, connection: noteConnection, handle: handle, complete: complete,
      context: Unmanaged.passUnretained(core).toOpaque())
    var functions = Microhttpd.functions
    let started = bundlefs_microhttpd_start(&functions, socket, &limits, &callbacks)
    guard let started else {
      close(socket)
      throw .failed(.current)
    }
    daemon = Locked(started)
  }

  /// Ends all connections, and returns when their threads have ended. The streams of responses must end soon.
  public func stop() {
    if let daemon = daemon.withLock({ $0.take() }) { Microhttpd.functions.stop_daemon(daemon) }
  }
}

/// A `MHD_AccessHandlerCallback`: called for the head of a request, for each part of its body, and at its end.
private func handle(
  _ context: UnsafeMutableRawPointer?, _ connection: OpaquePointer?, _ path: CName?, _ method: CName?,
  _ version: CName?, _ bytes: UnsafePointer<CChar>?, _ count: UnsafeMutablePointer<Int>?,
  _ state: UnsafeMutablePointer<UnsafeMutableRawPointer?>?
) -> MHD_Result {
  guard let context, let connection, let path, let method, let count, let state else { return .NO }
  guard let known = state.pointee else {
    let core = Unmanaged<WebServerCore>.fromOpaque(context).takeUnretainedValue()
    let request = WebConnection(core)
    state.pointee = Unmanaged.passRetained(request).toOpaque()
    return request.begin(connection, path: path, method: method)
  }
  let request = Unmanaged<WebConnection>.fromOpaque(known).takeUnretainedValue()
  return count.pointee > 0 ? request.receive(bytes, count, connection) : request.end(connection)
}

/// A `MHD_RequestCompletedCallback`.
private func complete(
  _ context: UnsafeMutableRawPointer?, _ connection: OpaquePointer?,
  _ state: UnsafeMutablePointer<UnsafeMutableRawPointer?>?, _ reason: MHD_RequestTerminationCode
) {
  guard let request = state?.pointee else { return }
  state?.pointee = nil
  Unmanaged<WebConnection>.fromOpaque(request).release()
}
