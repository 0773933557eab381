import ControlClient
import Glibc
import Posix
import Routing

/// Waits for the end of a mount's processes, which go on for a moment after the unmount: they still have the layers open, and
/// remove the work folder.
struct MountEnd: ~Copyable {
  private static let timeoutMilliseconds: CInt = 2000
  /// How long the processes may take to end before it is asked whether there is a copy of the mount, with which they go on.
  private static let usualTime: CInt = 500
  /// How long they may take then; without privileges, not all copies are seen.
  private static let (patience, patienceWithoutPrivileges): (CInt, CInt) = (10_000, 2000)

  private let process: ProcessDescriptor
  private let device: UInt64

  /// Asks the mount for its process, which must be done before the unmount.
  /// - Returns: nil if it does not tell, or if the process is in another namespace.
  init?(of entry: MountTableEntry) {
    let path = entry.mountPoint
    let owner = geteuid() == 0 ? (entry.user, entry.group) : (nil, nil)
    let answer = try? ForkedCall.run(timeoutMilliseconds: Self.timeoutMilliseconds) {
      // Without `allow_other` a mount answers only the user that mounted it.
      if let user = owner.0, let group = owner.1, user != 0 {
        _ = try? ThisProcess.become(user: user, group: group)
      }
      return (try? StatusClient.read(.json, at: path)) ?? []
    }
    guard case .returned(let status)? = answer, let process = ProcessDescriptor(servingMountOf: status) else {
      return nil
    }
    self.process = process
    device = entry.device
  }

  /// To be called after the unmount.
  borrowing func wait() {
    if process.waitForEnd(milliseconds: Self.usualTime) { return }
    // In another mount namespace.
    if VisibleMount.all().contains(where: { $0.entry.device == device }) { return }
    _ = process.waitForEnd(milliseconds: geteuid() == 0 ? Self.patience : Self.patienceWithoutPrivileges)
  }
}
