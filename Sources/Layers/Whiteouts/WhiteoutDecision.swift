import CLibrary
import Posix

/// Decides what a directory of one layer hides of the layers below. `MergedDirectory.lookup` asks for one name, `list` for all.
extension LayerDirectory {
  /// Whether the directory has the marker of a name, which hides it in the layers below. Where names fold, a whiteout of
  /// any spelling does, too.
  func hasWhiteoutMarker(_ name: CName, length: Int) throws(Errno) -> Bool {
    if let spellings { return try hidesFolded(name, spellings) }
    return try WhiteoutMarker.withMarker(of: name, length: length) { marker throws(Errno) in
      try contains(marker)
    }
      ?? false
  }

  /// Whether the directory hides the directories of the same path in the layers below.
  func isOpaque() throws(Errno) -> Bool {
    if try contains(WhiteoutMarker.opaque.cName) { return true }
    guard case .descriptor(let handle) = backing else { return false }
    return try gate.call { () throws(Errno) in
      for mark in [OpaqueAttribute.trusted, OpaqueAttribute.user, OpaqueAttribute.fuse] {
        if try handle.descriptor.directoryAttribute(mark.cName, is: OpaqueAttribute.opaque) { return true }
      }
      return false
    }
  }

  /// As `isOpaque`, but false if the file system has failed: a lookup in the directory fails before it reaches the
  /// layers below.
  func isKnownToBeOpaque() throws(Errno) -> Bool {
    do throws(Errno) { return try isOpaque() } catch {
      if error.isFileSystemFailure { return false }
      throw error
    }
  }

  /// Whether an entry can be a whiteout that is no device.
  func mayHaveAttributeWhiteouts() throws(Errno) -> Bool {
    guard case .descriptor(let handle) = backing else { return false }
    return try gate.call { () throws(Errno) in
      try !overlayMarks(handle).isDisjoint(with: [.whiteouts, .userWhiteouts])
    }
  }

  /// Whether an entry is a whiteout: a device 0:0, or an empty file with the attribute for it.
  func isWhiteout(
    _ name: CName, _ attributes: FileStatus, in handle: SharedDescriptor
  ) throws(Errno) -> Bool {
    if attributes.isWhiteoutDevice { return true }
    guard attributes.isRegular, attributes.size == 0 else { return false }
    let marks = try overlayMarks(handle)
    if marks.contains(.whiteouts), try has("trusted.overlay.whiteout", name, attributes, in: handle) {
      return true
    }
    if !marks.contains(.userWhiteouts) { return false }
    return try has("user.overlay.whiteout", name, attributes, in: handle)
  }
}

extension MergedDirectory {
  /// Whether a whiteout in a higher layer hides the layer's entry.
  public func hides(_ name: CName, ofLayer layer: Int) throws(Errno) -> Bool {
    for part in parts where part.layer < layer && !part.gate.isSkipped {
      if case .whiteout = try part.find(name) { return true }
      if try part.hasWhiteoutMarker(name, length: strlen(name)) { return true }
    }
    return false
  }

  /// Whether a directory has become opaque and now hides those below it.
  public func hasOpaqueParts() throws(Errno) -> Bool {
    for part in parts where part.layer != parts[parts.count - 1].layer && !part.gate.isSkipped {
      if try part.isKnownToBeOpaque() { return true }
    }
    return false
  }
}

extension Descriptor {
  /// Whether this directory has a device whiteout of the name.
  func hasDeviceWhiteout(_ name: CName) throws(Errno) -> Bool {
    do throws(Errno) { return try attributes(of: name).isWhiteoutDevice } catch {
      if error == .noSuchFileOrDirectory || error == .fileNameTooLong { return false }
      throw error
    }
  }
}
