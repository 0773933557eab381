import Posix

/// Takes entries away that another layer has now.
extension UpperLayer {
  /// Removes an entry that is no directory, if it still is the expected one. It is moved to the work folder first, and back if it
  /// is not, so that nothing is lost that a program has put there meanwhile.
  /// - Returns: whether it was removed.
  func takeAway(
    _ name: CName, in parent: LayerDirectory, if isExpected: (FileStatus) -> Bool
  ) throws(Errno) -> Bool {
    try parent.withDescriptor { parent throws(Errno) in
      guard isExpected(try parent.attributes(of: name)) else { return false }
      return try withKeptTimes(of: parent) { () throws(Errno) in
        try work.withName { folder, temporary throws(Errno) in
          try parent.renameNew(name, to: temporary, in: folder)
          if isExpected(try folder.attributes(of: temporary)) {
            try folder.remove(temporary, isDirectory: false)
            return true
          }
          try folder.renameNew(temporary, to: name, in: parent)
          return false
        }
      }
    }
  }

  /// Removes a whiteout of either format, if there still is one.
  func takeWhiteoutAway(_ name: CName, in parent: LayerDirectory) throws(Errno) {
    if case .whiteout = try parent.findExact(name, isLikelyDirectory: false) {
      _ = try takeAway(name, in: parent) { $0.isWhiteoutDevice || ($0.isRegular && $0.size == 0) }
    }
    try takeMarkerAway(name, in: parent)
  }

  /// Removes the marker of a name, if there is one.
  func takeMarkerAway(_ name: CName, in parent: LayerDirectory) throws(Errno) {
    try parent.withDescriptor { parent throws(Errno) in
      guard try whiteouts.hasMarker(of: name, in: parent) else { return }
      _ = try withKeptTimes(of: parent) { () throws(Errno) in
        try whiteouts.removeMarker(of: name, in: parent)
        return true
      }
    }
  }

  /// Removes a directory.
  /// - Returns: false if it is not empty.
  func takeDirectoryAway(_ name: CName, in parent: LayerDirectory) throws(Errno) -> Bool {
    try parent.withDescriptor { parent throws(Errno) in
      try withKeptTimes(of: parent) { () throws(Errno) in
        do throws(Errno) {
          try parent.remove(name, isDirectory: true)
          return true
        } catch {
          if error == .directoryNotEmpty || error == .fileExists { return false }
          throw error
        }
      }
    }
  }

  /// Removes the marks by which a directory hides those of the layers below.
  func removeOpaqueMarks(of directory: LayerDirectory) throws(Errno) {
    try directory.withDescriptor { directory throws(Errno) in
      _ = try withKeptTimes(of: directory) { () throws(Errno) in
        if try !directory.removeEntry(WhiteoutMarker.opaque.cName) { throw .directoryNotEmpty }
        return true
      }
      for name in [OpaqueAttribute.trusted, OpaqueAttribute.user, OpaqueAttribute.fuse] {
        guard try directory.directoryAttribute(name.cName, is: OpaqueAttribute.opaque) else { continue }
        try directory.removeIfPresent(name.cName)
      }
    }
  }

  private func withKeptTimes(
    of directory: borrowing Descriptor, _ body: () throws(Errno) -> Bool
  ) throws(Errno) -> Bool {
    var result = false
    try directory.keepingTimes { () throws(Errno) in
      try directory.unlocking(".", relocks: true) { () throws(Errno) in result = try body() }
    }
    return result
  }
}
