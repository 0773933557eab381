import Posix

/// Why a server's object cannot be read.
public enum RemoteFault: Error, Hashable, Sendable {
  /// libcurl is not installed.
  case noLibrary
  /// The package was built without its trait `Networking`.
  case leftOut
  /// The server could not be reached, or the connection was lost; with libcurl's reason.
  case unreachable(String)
  /// The server's certificate is not one that the system trusts; with libcurl's reason.
  case untrusted(String)
  /// An HTTP status other than those that are expected.
  case status(Int)
  /// The server sends another state of the object by now.
  case changed
  /// The server has broken the protocol.
  case violation(String)
  /// The file with the user's headers cannot be read, or is malformed.
  case headers(String)
  /// The cache, or memory.
  case local(Errno)

  /// The message for users. It has no URL, which can have a signature.
  public var message: String {
    switch self {
    case .noLibrary: "layers by URL need libcurl; install the package 'libcurl4'"
    case .leftOut: "layers by URL need the trait 'Networking' of the package bundlefs; it is off"
    case .unreachable(let reason): "the server does not answer: \(reason)"
    case .untrusted(let reason): "the server's certificate is not trusted: \(reason)"
    case .status(401), .status(403):
      "the server refuses access; is a user needed in ~/.netrc, or a token in http_headers_file?"
    case .status(404), .status(410): "the server has no such file"
    case .status(let status): "the server answers with the status \(status)"
    case .changed: "the file on the server was changed"
    case .violation(let what): "the server's answer is wrong: \(what)"
    case .headers(let reason): "http_headers_file: \(reason)"
    case .local(let error): "\(error)"
    }
  }

  /// Whether it makes sense to try again soon.
  var isTemporary: Bool {
    switch self {
    // The file may be half written.
    case .unreachable, .headers: true
    case .status(let status): status == 408 || status == 429 || status >= 500
    default: false
    }
  }

  /// As a file system answers it. None of them says anything about the content of an archive.
  var errno: Errno {
    switch self {
    case .unreachable: .timedOut
    case .local(let error): error
    case .noLibrary, .leftOut, .untrusted, .status, .violation, .headers: .remoteIOError
    case .changed: .ioError
    }
  }
}
