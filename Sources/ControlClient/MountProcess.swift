import CLibrary
import Posix
import Routing

/// The process that serves a mount. Without it, the mount sends no event and does not end.
public final class MountProcess: Sendable {
  private let process: ProcessDescriptor
  private let mountPoint: [UInt8]

  /// - Returns: nil if the mount does not name it.
  public init?(of mountPoint: [UInt8]) {
    guard let status = try? StatusClient.read(.json, at: mountPoint),
      let process = ProcessDescriptor(servingMountOf: status)
    else { return nil }
    self.process = process
    self.mountPoint = mountPoint
  }

  /// A descriptor that is readable once the process has ended.
  public var rawValue: CInt { process.rawValue }

  /// Whether the process, which has ended, has left its mount. Another process may be about to unmount it.
  public func hasLeftMount(_ cancellation: borrowing CancellationPipe) -> Bool {
    for _ in 0..<10 {
      do throws(Errno) {
        _ = try StatusClient.read(.controlName, at: mountPoint)
        return false
      } catch {
        guard error == .socketNotConnected || error.rawValue == ECONNABORTED else { return false }
        if cancellation.wait(milliseconds: 100) { return false }
      }
    }
    return true
  }
}
