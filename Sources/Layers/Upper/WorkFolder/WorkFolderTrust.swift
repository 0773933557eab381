import CLibrary
import Posix

/// Why a folder that has the work folder's name is not used.
public enum WorkFolderFault: Sendable, Equatable {
  /// It is no directory.
  case notDirectory
  /// It is on another mount than the layer's root.
  case otherMount
  /// It belongs to another user than the one of this process.
  case otherOwner(UInt32)
  /// Others may write to it, and the file system does not let that be changed.
  case writableByOthers
}

extension WorkFolder {
  /// Opens the folder, which is made unless there is one.
  /// - Throws: EPERM, ENOTDIR for a folder with a `WorkFolderFault`.
  func make(in root: borrowing Descriptor) throws(Errno) -> Descriptor {
    try root.keepingTimes { () throws(Errno) in
      do throws(Errno) { try root.makeDirectory(Self.path, mode: 0o700) } catch {
        if error != .fileExists { throw error }
      }
    }
    guard let folder = try open(in: root) else { throw .noSuchFileOrDirectory }
    return folder
  }

  /// Opens the folder.
  /// - Returns: nil if there is none.
  /// - Throws: as `make`.
  func open(in root: borrowing Descriptor) throws(Errno) -> Descriptor? {
    let folder: Descriptor
    do throws(Errno) { folder = try root.open(Self.path, [.pathOnly, .directory, .noFollow]) } catch {
      if error == .noSuchFileOrDirectory { return nil }
      throw error
    }
    if try Self.tighten(folder, in: root) != nil, !trustsOthers { throw .notPermitted }
    // Entries would inherit it.
    try folder.removeIfPresent(ACLAttribute.default.cName)
    return folder
  }

  /// Why the folder in a layer is not used; nil if nothing speaks against it, or if there is none.
  static func fault(in root: borrowing Descriptor) throws(Errno) -> WorkFolderFault? {
    do throws(Errno) {
      return try tighten(try root.open(path, [.pathOnly, .directory, .noFollow]), in: root)
    } catch {
      if error == .noSuchFileOrDirectory { return nil }
      if error == .notDirectory || error == .tooManySymbolicLinkLevels { return .notDirectory }
      throw error
    }
  }

  /// Makes sure that no other user can enter a folder of this process's user, such as one that was left over.
  private static func tighten(
    _ folder: borrowing Descriptor, in root: borrowing Descriptor
  ) throws(Errno) -> WorkFolderFault? {
    let (found, outer) = (try folder.attributes(), try root.attributes())
    if found.identity.device != outer.identity.device { return .otherMount }
    if try folder.mountID() != root.mountID() { return .otherMount }
    if found.owner != geteuid() { return .otherOwner(found.owner) }
    if found.mode & 0o7777 == 0o700 { return nil }
    // Some file systems have one mode for all directories.
    try? folder.changeMode(0o700)
    return try folder.attributes().mode & 0o022 == 0 ? nil : .writableByOthers
  }
}

extension UpperLayer {
  /// Why the work folder in a layer is not used; nil if there is none, or nothing speaks against it.
  public static func workFolderFault(in layer: DirectoryLayer) -> WorkFolderFault? {
    let work = WorkFolder(layer, trustsOthers: false)
    return (try? work.withPlace { place throws(Errno) in try WorkFolder.fault(in: place) }) ?? nil
  }
}
