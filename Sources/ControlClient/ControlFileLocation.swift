import CLibrary
import Posix
import Routing

/// The location of a mount's control file, whatever the option `control=` calls it.
public struct ControlFileLocation: Sendable {
  /// The control file's name in the mount's root; empty if the mount has none.
  public let name: [UInt8]
  private let mountPoint: [UInt8]
  /// The mount's device number, which no other mount has while this one exists.
  private let device: UInt64
  /// The ID of the mount in the mount table; nil if the mount table does not show the mount.
  private let mountID: Int?

  /// Asks the mount at an absolute path for its control file's name.
  /// - Parameter device: the device number that the mount must have; nil accepts any.
  /// - Throws: ENOTTY where no bundlefs, or one with another device number, is mounted; ENOTCONN if the mount's
  ///   daemon is dead; EPROTO if the answer is not a file name.
  public init(mountPoint: [UInt8], device: UInt64? = nil) throws(Errno) {
    let root = try Descriptor.open(mountPoint, [.read, .directory])
    name = try StatusClient.read(.controlName, of: root)
    guard name.isEmpty || StatusProtocol.isControlName(name) else { throw Errno(rawValue: EPROTO) }
    self.device = try root.device()
    if let device, device != self.device { throw .inappropriateIOCTLForDevice }
    self.mountPoint = mountPoint
    mountID = Self.mountID(at: mountPoint)
  }

  /// The control file's absolute path.
  public var path: [UInt8] { mountPoint + [UInt8(ascii: "/")] + name }

  /// Whether the mount has a control file; with `control=none` it has none.
  public var exists: Bool { !name.isEmpty }

  /// Whether the mount is still on top at its mount point.
  public var isMounted: Bool { Self.mountID(at: mountPoint) == mountID }

  private static func mountID(at path: [UInt8]) -> Int? { MountTableEntry.containing(path)?.id }

  /// Opens only a regular file in the mount's root: the daemon is not trusted with the choice of the file.
  /// - Throws: EACCES; ENOENT if the mount has none; ENOTTY if another file system is now mounted there; ENOTCONN if the daemon is dead.
  public func open(_ flags: OpenFlags) throws(Errno) -> ControlFileHandle {
    let root = try Descriptor.open(mountPoint, [.pathOnly, .directory])
    guard try root.device() == device else { throw .inappropriateIOCTLForDevice }
    return ControlFileHandle(
      try withCName(name) { name throws(Errno) in try root.openRegularFile(name, flags) })
  }
}
