import Posix

/// Puts whiteouts in the place of the upper layer's entries, and entries in the place of whiteouts.
extension UpperLayer {
  /// Hides a name that this layer does not have.
  /// - Throws: EEXIST if it has.
  func makeWhiteout(_ name: CName, in parent: borrowing Descriptor) throws(Errno) {
    if !whiteouts.areMarkers, try whiteouts.makeDevice(name, in: parent) { return }
    _ = try whiteouts.makeMarker(of: name, in: parent)
  }

  /// Removes a file that layers below have, too.
  func replaceByWhiteout(_ name: CName, in parent: borrowing Descriptor) throws(Errno) {
    if try replaceByDevice(name, in: parent, isDirectory: false) { return }
    try marking(name, in: parent) { () throws(Errno) in try parent.remove(name, isDirectory: false) }
  }

  /// Makes a marker and runs the body, which takes the entry away that is still visible beside it.
  func marking(
    _ name: CName, in parent: borrowing Descriptor, _ body: () throws(Errno) -> Void
  ) throws(Errno) {
    let isNew = try whiteouts.makeMarker(of: name, in: parent)
    do throws(Errno) { try body() } catch {
      if isNew { try? whiteouts.removeMarker(of: name, in: parent) }
      throw error
    }
  }

  /// Puts a device whiteout in the place of an entry; of a directory only if it has nothing but whiteouts.
  /// - Returns: false if markers must be made instead.
  func replaceByDevice(
    _ name: CName, in parent: borrowing Descriptor, isDirectory: Bool
  ) throws(Errno) -> Bool {
    if whiteouts.areMarkers { return false }
    return try work.withName { folder, temporary throws(Errno) in
      guard try whiteouts.makeReplacement(temporary, in: folder) else { return false }
      do throws(Errno) {
        if isDirectory {
          try parent.unlocking(name) { () throws(Errno) in
            try folder.rename(temporary, to: name, in: parent, .exchange)
          }
        } else {
          try folder.rename(temporary, to: name, in: parent)
        }
      } catch {
        try? folder.remove(temporary, isDirectory: false)
        throw error
      }
      if !isDirectory {
        // rename(2) does nothing with two names of one file: the name had become a whiteout meanwhile.
        try? folder.remove(temporary, isDirectory: false)
        whiteouts.prepare()
        return true
      }
      do throws(Errno) { try removeCleared(temporary, in: folder) } catch {
        // It got an entry at the last moment.
        try folder.rename(temporary, to: name, in: parent, .exchange)
        try? folder.remove(temporary, isDirectory: false)
        throw error
      }
      whiteouts.prepare()
      return true
    }
  }

  /// Puts an entry of the work folder in the place of a device whiteout.
  func replaceWhiteout(
    _ name: CName, in parent: borrowing Descriptor, by temporary: CName, in folder: borrowing Descriptor,
    isDirectory: Bool
  ) throws(Errno) {
    if isDirectory {
      try folder.rename(temporary, to: name, in: parent, .exchange)
      try folder.remove(temporary, isDirectory: false)
    } else {
      try folder.rename(temporary, to: name, in: parent)
    }
  }
}
