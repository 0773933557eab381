import Posix

/// What the upper layer has at a path.
public enum UpperEntry {
  case nothing
  case whiteout
  case file
  /// A directory, with the number of entries in it and below, whiteouts included.
  case directory(entries: Int)
}

extension UpperLayer {
  /// The directories of this layer at a path, in all spellings, with their own paths.
  /// - Parameter device: that of a mount, which is not entered where it covers a part of the layer.
  /// - Returns: none if the layer has none.
  /// - Throws: ELOOP for the mount.
  public func directories(
    at path: some Sequence<[UInt8]>, outside device: UInt64
  ) throws(Errno) -> [(path: [[UInt8]], directory: LayerDirectory)] {
    var found: [(path: [[UInt8]], directory: LayerDirectory)] = [([], layer.root)]
    for name in path {
      if WhiteoutMarker.isMarker(name) { return [] }
      var next: [(path: [[UInt8]], directory: LayerDirectory)] = []
      for (path, parent) in found {
        for spelling in try parent.allSpellings(of: name) {
          let entry = try withCName(spelling) { spelling throws(Errno) in
            try parent.findExact(spelling, isLikelyDirectory: true)
          }
          guard case .directory(let inner, _) = entry else { continue }
          if inner.identity.device == device { throw .tooManySymbolicLinkLevels }
          next.append((path + [spelling], inner))
        }
      }
      found = next
    }
    return found
  }

  /// What this layer has at a name of this spelling.
  /// - Parameters:
  ///   - parent: a directory of this layer.
  ///   - progress: is passed the number of entries so far.
  public func entry(
    _ name: CName, in parent: LayerDirectory, progress: (Int) -> Void
  ) throws(Errno) -> UpperEntry {
    if WhiteoutMarker.isMarker(name) { return .nothing }
    switch try parent.findExact(name, isLikelyDirectory: false) {
    case .file: return .file
    case .whiteout: return .whiteout
    case .directory(let directory, _): return .directory(entries: try directory.entryCount(progress))
    case .nothing:
      return try hasMarker(of: name, in: parent) ? .whiteout : .nothing
    }
  }

  func hasMarker(of name: CName, in parent: LayerDirectory) throws(Errno) -> Bool {
    try parent.withDescriptor { parent throws(Errno) in try whiteouts.hasMarker(of: name, in: parent) }
  }

  /// Removes what this layer has at a name of this spelling, so that the layers below show. A directory vanishes at once,
  /// with all that is in it.
  /// - Throws: EBUSY where something is mounted; errors of unlink(2) and rename(2). What was removed from view may be left in
  ///   the work folder.
  public func revert(_ name: CName, in parent: LayerDirectory) throws(Errno) {
    if WhiteoutMarker.isMarker(name) { return }
    let found = try parent.findExact(name, isLikelyDirectory: false)
    try parent.withDescriptor { parent throws(Errno) in
      try parent.unlocking(".", relocks: true) { () throws(Errno) in
        // First, since it hides nothing while there is an entry.
        try whiteouts.removeMarker(of: name, in: parent)
        switch found {
        case .nothing: return
        case .file, .whiteout: try parent.remove(name, isDirectory: false)
        case .directory: try revertDirectory(name, in: parent)
        }
      }
    }
  }

  private func revertDirectory(_ name: CName, in parent: borrowing Descriptor) throws(Errno) {
    try work.withName { folder, temporary throws(Errno) in
      try parent.unlocking(name) { () throws(Errno) in try parent.rename(name, to: temporary, in: folder) }
      try work.removeTree([UInt8](bytesOf: temporary), in: folder)
    }
  }
}

extension LayerDirectory {
  /// The names of all entries, of whiteout markers as well.
  func names() throws(Errno) -> [[UInt8]] {
    var names: [[UInt8]] = []
    try forEachEntry { entry throws(Errno) in names.append([UInt8](bytesOf: entry.name)) }
    return names
  }

  /// The number of entries in this directory and below, whiteouts included.
  /// - Parameter progress: is passed the number so far.
  func entryCount(_ progress: (Int) -> Void) throws(Errno) -> Int {
    var count = 0
    var frames = [(self, try self.names()[...])]
    while !frames.isEmpty {
      let (directory, _) = frames[frames.count - 1]
      guard let name = frames[frames.count - 1].1.popFirst() else {
        frames.removeLast()
        continue
      }
      count += 1
      progress(count)
      let found = try withCName(name) { name throws(Errno) in try directory.find(name) }
      guard case .directory(let inner, _) = found, inner.identity.device == directory.identity.device else {
        continue
      }
      frames.append((inner, try inner.names()[...]))
    }
    return count
  }
}
