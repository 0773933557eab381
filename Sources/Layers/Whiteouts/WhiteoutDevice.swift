import CLibrary
import Posix

/// A device 0:0 in the work folder, of which the whiteouts are further names (hard links), as overlayfs has it. So a file can
/// be removed when the file system has no inode left for a whiteout.
///
/// The functions make no call on a gate: their callers do.
final class WhiteoutDevice: Sendable {
  private static let name: StaticString = "whiteout"
  static var path: CName { name.cName }

  private let work: WorkFolder
  private let opened = Locked<SharedDescriptor?>(nil)

  init(_ work: WorkFolder) { self.work = work }

  /// Makes the device unless there is one.
  /// - Throws: EPERM and other errors of mknod(2) where the file system has no such devices, or no inode left.
  func prepare() throws(Errno) { _ = try device() }

  /// Makes a whiteout.
  /// - Returns: false if it must be a device of its own: the file system has no hard links, or the directory takes none from
  ///   the work folder.
  /// - Throws: EEXIST.
  func link(_ name: CName, in directory: borrowing Descriptor) throws(Errno) -> Bool {
    for isLast in [false, true] {
      guard let device = try? device() else { return false }
      do throws(Errno) {
        try directory.link(device.descriptor, as: name)
        return true
      } catch {
        if error == .fileExists { throw error }
        // ENOENT: it has lost its name in the work folder.
        if isLast || (error != .tooManyLinks && error != .noSuchFileOrDirectory) { return false }
      }
      try? discard()
    }
    return false
  }

  /// Moves the device itself to a name in the work folder, which takes no inode.
  /// - Throws: ENOENT if there is none.
  func move(to name: CName, in folder: borrowing Descriptor) throws(Errno) {
    opened.withLock { $0 = nil }
    guard try folder.hasDeviceWhiteout(Self.path) else { throw .noSuchFileOrDirectory }
    try folder.rename(Self.path, to: name, in: folder)
  }

  private func discard() throws(Errno) {
    opened.withLock { $0 = nil }
    try work.withFolder { folder throws(Errno) in try folder.remove(Self.path, isDirectory: false) }
  }

  private func device() throws(Errno) -> SharedDescriptor {
    if let known = opened.withLock({ $0 }) { return known }
    let device = try work.withFolder { folder throws(Errno) in SharedDescriptor(try Self.open(in: folder)) }
    opened.withLock { $0 = device }
    return device
  }

  /// Opens the device, which is made unless there is one.
  private static func open(in folder: borrowing Descriptor) throws(Errno) -> Descriptor {
    do throws(Errno) {
      try folder.makeNode(path, mode: FileKind.characterDevice.rawValue, device: 0)
    } catch {
      if error != .fileExists { throw error }
    }
    let device = try folder.open(path, [.pathOnly, .noFollow])
    guard try device.attributes().isWhiteoutDevice else { throw .notPermitted }
    return device
  }
}
