import Glibc
import Posix
import Routing

extension ProcessDescriptor {
  /// Opens the process of a mount that ends last, which the mount's status names.
  /// - Parameter status: as JSON.
  /// - Returns: nil if the status does not say, if the process is in another namespace, and before Linux 5.3.
  public init?(servingMountOf status: [UInt8]) {
    guard let process = JSONValue(status)?["process"],
      let id = process["id"]?.int.flatMap({ pid_t(exactly: $0) }),
      process["namespace"]?.int.map({ UInt64($0) }) == ThisProcess.idNamespace,
      let opened = try? ProcessDescriptor(id)
    else { return nil }
    self = opened
  }
}
