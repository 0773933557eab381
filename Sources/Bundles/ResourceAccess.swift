import Layers
import Posix

/// For whom resources are looked up: a lookup must not tell anybody of what he could not come to by its path.
public enum ResourceAccess: Sendable {
  /// For one who may go wherever the program may.
  case unrestricted
  /// For one of whom nothing is known: only through directories that let everyone through, by their mode and
  /// without an access control list; what lies behind another is not found.
  case everyone

  /// Whether names of a directory may be looked up.
  func mayPass(_ directory: MergedDirectory) throws(Errno) -> Bool { try allows(directory, 0o111) }

  /// Whether a directory may be listed.
  func mayList(_ directory: MergedDirectory) throws(Errno) -> Bool { try allows(directory, 0o555) }

  private func allows(_ directory: MergedDirectory, _ mode: UInt32) throws(Errno) -> Bool {
    if case .unrestricted = self { return true }
    guard try directory.top.attributes().mode & mode == mode else { return false }
    return try !directory.top.hasAccessControlList()
  }
}

extension FoundResource {
  /// Whether everyone may read it, or list it if it is a directory: by its mode, without an access control list.
  public func isForEveryone() throws(Errno) -> Bool {
    guard attributes.mode & 0o444 == 0o444 else { return false }
    return try extendedAttribute("system.posix_acl_access") == nil
  }
}

extension LayerDirectory {
  fileprivate func hasAccessControlList() throws(Errno) -> Bool {
    do throws(Errno) {
      return try extendedAttribute("system.posix_acl_access", into: .init(start: nil, count: 0)) > 0
    } catch {
      if error == .noData || error == .notSupported { return false }
      throw error
    }
  }
}
