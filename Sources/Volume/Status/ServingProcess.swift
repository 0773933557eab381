import Glibc
import Posix
import Routing

/// The process of a mount that ends last, so that a command can wait for the end.
struct ServingProcess {
  /// As in its namespace.
  let id: pid_t
  let namespace: UInt64

  /// - Parameter isWorker: whether another process, the parent of this one, outlives it.
  init(isWorker: Bool) {
    id = isWorker ? getppid() : getpid()
    namespace = ThisProcess.idNamespace
  }

  func write(to json: inout JSONWriter) {
    json.object { json in
      json.member("id", id)
      json.member("namespace", namespace)
    }
  }
}
