import Posix

extension UpperLayer {
  /// Removes a non-directory from view: from this layer, and by a whiteout if a layer below has the name.
  /// - Parameter isKnown: whether this layer was found to have it just now.
  /// - Throws: ENOENT if the name is not visible; EISDIR for a directory.
  public func remove(
    _ name: CName, from directory: MergedDirectory, isKnown: Bool = false
  ) throws(Errno) {
    if isKnown, directory.isAlone { return try removeAlone(name, from: directory, isDirectory: false) }
    try repeatingRaces { () throws(Errno) in
      switch try directory.lookup(name) {
      case nil: throw .noSuchFileOrDirectory
      case .directory: throw .isDirectory
      case .file(let layer, let attributes):
        if layer != directory.top.layer { try directory.checkFlags(attributes) }
        let isBelow = try directory.needsWhiteout(name)
        try directory.top.withDescriptor { parent throws(Errno) in
          if layer != directory.top.layer {
            try makeWhiteout(name, in: parent)
          } else if isBelow {
            try replaceByWhiteout(name, in: parent)
          } else {
            try parent.remove(name, isDirectory: false)
          }
        }
      }
    }
  }

  /// Removes an empty directory from view, as `remove`.
  /// - Parameter isSole: whether it was found to have no twins just now.
  /// - Throws: ENOENT, ENOTDIR, ENOTEMPTY.
  public func removeDirectory(
    _ name: CName, from directory: MergedDirectory, isSole: Bool = false
  ) throws(Errno) {
    var isSimple = directory.isAlone
    if isSimple, !isSole { isSimple = try !directory.hasTwins(named: name) }
    if isSimple {
      do throws(Errno) { return try removeAlone(name, from: directory, isDirectory: true) } catch {
        // It may have nothing but whiteouts, or be one.
        if error != .directoryNotEmpty && error != .notDirectory { throw error }
      }
    }
    try repeatingRaces { () throws(Errno) in
      guard let entry = try directory.lookup(name) else { throw .noSuchFileOrDirectory }
      guard case .directory(let removed, let attributes) = entry else { throw .notDirectory }
      guard try removed.list().items.isEmpty else { throw .directoryNotEmpty }
      let isBelow = try directory.needsWhiteout(name)
      let hasOwn = removed.top.layer == directory.top.layer
      if !hasOwn { try directory.checkFlags(attributes) }
      try absorbTwins(of: removed, name, in: directory)
      try directory.top.withDescriptor { parent throws(Errno) in
        if hasOwn {
          try removeOwnDirectory(name, in: parent, isBelow: isBelow)
        } else {
          try makeWhiteout(name, in: parent)
        }
      }
    }
  }

  /// Removes an entry that no layer below has.
  private func removeAlone(
    _ name: CName, from directory: MergedDirectory, isDirectory: Bool
  ) throws(Errno) {
    try directory.top.withDescriptor { parent throws(Errno) in
      try parent.remove(name, isDirectory: isDirectory)
    }
  }

  /// Repeats the body, which finds out what is where and then acts, if that has changed in between.
  func repeatingRaces(_ body: () throws(Errno) -> Void) throws(Errno) {
    for _ in 0..<16 {
      do throws(Errno) { return try body() } catch {
        // A whiteout was to be made where a copy has appeared.
        if error != .fileExists { throw error }
      }
    }
    throw .resourceBusy
  }

  private func removeOwnDirectory(
    _ name: CName, in parent: borrowing Descriptor, isBelow: Bool
  ) throws(Errno) {
    if isBelow {
      try refuseHiddenEntries(name, in: parent)
      if try replaceByDevice(name, in: parent, isDirectory: true) { return }
      return try marking(name, in: parent) { () throws(Errno) in
        try removeByWorkFolder(name, in: parent)
      }
    }
    do throws(Errno) { try parent.remove(name, isDirectory: true) } catch {
      if error != .directoryNotEmpty { throw error }
      try refuseHiddenEntries(name, in: parent)
      try removeByWorkFolder(name, in: parent)
    }
  }

  /// - Throws: ENOTEMPTY if a directory, in which nothing shows, has names that the view hides: it is not moved aside then.
  func refuseHiddenEntries(_ name: CName, in parent: borrowing Descriptor) throws(Errno) {
    if layer.root.place == nil { return }
    try parent.unlocking(name, relocks: true) { () throws(Errno) in
      _ = try whiteouts.clearable(try parent.open(name, [.pathOnly, .directory, .noFollow]))
    }
  }

  /// Removes a directory that has nothing but whiteouts: in the work folder, since without them it would show what is
  /// below.
  func removeByWorkFolder(_ name: CName, in parent: borrowing Descriptor) throws(Errno) {
    try work.withName { folder, temporary throws(Errno) in
      try parent.unlocking(name) { () throws(Errno) in
        try parent.renameNew(name, to: temporary, in: folder)
      }
      do throws(Errno) { try removeCleared(temporary, in: folder) } catch {
        try folder.renameNew(temporary, to: name, in: parent)
        throw error
      }
    }
  }

  /// Removes a directory after its whiteouts.
  /// - Throws: ENOTEMPTY if it has anything else.
  func removeCleared(_ name: CName, in parent: borrowing Descriptor) throws(Errno) {
    let directory = try parent.open(name, [.pathOnly, .directory, .noFollow])
    try parent.unlocking(name) { () throws(Errno) in try whiteouts.clear(directory) }
    try parent.remove(name, isDirectory: true)
  }
}

extension MergedDirectory {
  /// Checks that the flags of chattr(1) permit to hide an entry of a layer below. Those of the upper layer's own entries, and
  /// whether this directory is immutable, its file system checks.
  /// - Throws: EPERM.
  func checkFlags(_ hidden: FileStatus) throws(Errno) {
    if hidden.isImmutable || hidden.isAppendOnly { throw .notPermitted }
    if try top.attributes().isAppendOnly { throw .notPermitted }
  }
}
