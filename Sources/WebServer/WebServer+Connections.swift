import CMicroHTTPD
import Glibc

// The calls of libmicrohttpd that tell of connections, on the thread that accepts them and on the threads that they have.

/// A `MHD_AcceptPolicyCallback`.
func mayConnect(_ context: UnsafeMutableRawPointer?, _ address: UnsafePointer<sockaddr>?, _ size: socklen_t)
  -> MHD_Result
{
  guard let context else { return .NO }
  let core = Unmanaged<WebServerCore>.fromOpaque(context).takeUnretainedValue()
  return core.shares.hasRoom(for: core.user(at: address)) ? .YES : .NO
}

/// A `MHD_NotifyConnectionCallback`, which keeps the user of a connection while it lasts.
func noteConnection(
  _ context: UnsafeMutableRawPointer?, _ connection: OpaquePointer?,
  _ kept: UnsafeMutablePointer<UnsafeMutableRawPointer?>?, _ event: MHD_ConnectionNotificationCode
) {
  guard let context, let connection, let kept else { return }
  let core = Unmanaged<WebServerCore>.fromOpaque(context).takeUnretainedValue()
  if event == .CONNECTION_NOTIFY_STARTED {
    var functions = Microhttpd.functions
    let user = WebUser(core.user(at: bundlefs_microhttpd_client(&functions, connection)))
    kept.pointee = Unmanaged.passRetained(user).toOpaque()
    core.shares.begin(user.id)
  } else if let known = kept.pointee {
    kept.pointee = nil
    core.shares.end(Unmanaged<WebUser>.fromOpaque(known).takeRetainedValue().id)
  }
}

/// The user at the other end of a connection.
final class WebUser: Sendable {
  let id: ConnectionShares.User

  init(_ id: ConnectionShares.User) { self.id = id }

  static func of(_ connection: OpaquePointer) -> WebUser? {
    var functions = Microhttpd.functions
    return bundlefs_microhttpd_kept(&functions, connection).map {
      Unmanaged<WebUser>.fromOpaque($0).takeUnretainedValue()
    }
  }
}
