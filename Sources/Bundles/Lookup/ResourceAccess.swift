import Layers
import Posix

/// The permissions that a lookup checks. A lookup must not reveal files that the client could not reach by path.
public enum ResourceAccess: Sendable {
  /// The client has the permissions of this process.
  case unrestricted
  /// The client is unknown: only directories are searched that their mode opens to everyone and that have no ACL.
  case everyone

  func maySearch(_ directory: MergedDirectory) throws(Errno) -> Bool { try allows(directory, 0o111) }

  func mayRead(_ directory: MergedDirectory) throws(Errno) -> Bool { try allows(directory, 0o555) }

  private func allows(_ directory: MergedDirectory, _ mode: UInt32) throws(Errno) -> Bool {
    if case .unrestricted = self { return true }
    guard try directory.attributeSource.attributes().mode & mode == mode else { return false }
    let noBytes = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    do throws(Errno) {
      return try directory.attributeSource.extendedAttribute("system.posix_acl_access", into: noBytes) == 0
    } catch {
      if error == .noData || error == .notSupported { return true }
      throw error
    }
  }
}

extension FoundResource {
  /// Whether the mode grants everyone read permission and there is no ACL.
  public func isReadableByEveryone() throws(Errno) -> Bool {
    guard attributes.mode & 0o444 == 0o444 else { return false }
    return try extendedAttribute("system.posix_acl_access") == nil
  }
}
