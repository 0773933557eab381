import CLibrary
import Posix

/// Whose the entries of archives are, and with it which of the rights that an archive names are served (`-o owners`).
///
/// An archive is data from anywhere, so that a set-user-ID bit, a capability or a device in it is a wish and not a right. These
/// are served where the mounting user has asked the kernel to honour them, and from a file that only that user can write.
public struct ArchiveOwners: Sendable, Equatable {
  /// Whether entries have the owners, sticky bits and attributes of the archive, and do not belong to the mounting user.
  public let areServed: Bool
  /// Whether set-user-ID bits, set-group-ID bits and capabilities are served.
  public let servesSetID: Bool
  /// Whether character and block devices are served.
  public let servesDevices: Bool

  /// All entries belong to the mounting user, as if that user had extracted them.
  public static let mounter = ArchiveOwners(areServed: false, servesSetID: false, servesDevices: false)

  /// Entries have the owners that the archive names.
  public static func archive(servesSetID: Bool, servesDevices: Bool) -> ArchiveOwners {
    ArchiveOwners(areServed: true, servesSetID: servesSetID, servesDevices: servesDevices)
  }

  /// The bits of a mode, besides the type, that are served.
  var modeBits: UInt32 { areServed ? servesSetID ? 0o7777 : 0o1777 : 0o777 }

  /// Without what could be given to programs by another user than this process's: one that can write the archive, that has
  /// its file system or that has the server.
  func limited(to source: ArchiveSource) -> ArchiveOwners {
    if !servesSetID && !servesDevices { return self }
    let status = source.attributes
    let isOwn = status.owner == geteuid() && status.mode & 0o022 == 0
    if isOwn, source.isLocalFile { return self }
    return .archive(servesSetID: false, servesDevices: false)
  }
}
