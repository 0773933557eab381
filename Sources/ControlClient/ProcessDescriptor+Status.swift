import CLibrary
import Posix
import Routing

extension ProcessDescriptor {
  /// Opens the process of a mount that ends last, which the mount's status names.
  /// - Parameter status: as JSON.
  /// - Returns: nil without a `servingProcess`, and before Linux 5.3.
  public init?(servingMountOf status: [UInt8]) {
    guard let id = JSONValue(status)?.servingProcess, let opened = try? ProcessDescriptor(id) else {
      return nil
    }
    self = opened
  }
}

extension JSONValue {
  /// The ID of the process of a mount that ends last, which the mount's status names; nil if the status does not say, or
  /// if the process is in another namespace.
  public var servingProcess: pid_t? {
    guard let process = self["process"],
      process["namespace"]?.int.flatMap({ UInt64(exactly: $0) }) == ThisProcess.idNamespace
    else { return nil }
    return process["id"]?.int.flatMap { pid_t(exactly: $0) }
  }
}
