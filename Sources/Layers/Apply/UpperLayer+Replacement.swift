import Posix

/// Puts whole entries in the place of those that the layer has, whatever those are.
extension UpperLayer {
  /// Puts a copy of another layer's entry, which is no directory, at a name. The copy is on disk before it gets the name.
  /// - Parameters:
  ///   - identity: that the entry must have.
  ///   - progress: is passed the number of bytes of each chunk of content.
  /// - Returns: the identity of the copy.
  /// - Throws: ESTALE and ENOENT as `LayerDirectory.openFile`; errors of open(2), write(2) and rename(2).
  func replace(
    _ name: CName, in parent: LayerDirectory, byCopyOf original: CName, in source: LayerDirectory,
    identity: FileIdentity, progress: @escaping (Int) -> Void
  ) throws(Errno) -> FileIdentity {
    try withTemporary { temporary throws(Errno) in
      let status = try source.attributes(of: original, identity: identity)
      let made =
        status.isRegular
        ? try copyFile(try source.openFile(original, identity: identity), to: temporary, progress)
        : try copySpecial(status, try source.openPath(original, identity: identity), to: temporary)
      try place(temporary, at: name, in: parent)
      return made
    }
  }

  /// Puts a further name of a file of this layer at a name.
  /// - Throws: EMLINK, and other errors of link(2) and rename(2).
  func replace(_ name: CName, in parent: LayerDirectory, byLinkTo file: LayerFile) throws(Errno) {
    try withTemporary { temporary throws(Errno) in
      try file.withDescriptor { file throws(Errno) in
        try work.withFolder { folder throws(Errno) in try folder.link(file, as: temporary) }
      }
      try place(temporary, at: name, in: parent)
    }
  }

  /// Puts an empty directory with the attributes of another one at a name.
  func replace(
    _ name: CName, in parent: LayerDirectory, byDirectoryWith attributes: CopiedAttributes, isOpaque: Bool
  ) throws(Errno) {
    try withTemporary { temporary throws(Errno) in
      try inWorkFolder { folder throws(Errno) in
        let made = try NewEntry.directory(mode: 0o700).make(temporary, inWorkFolder: folder)
        if isOpaque { try whiteouts.makeOpaque(made) }
        try attributes.set(on: made)
      }
      try place(temporary, at: name, in: parent)
    }
  }

  /// Removes what this layer has at a name.
  /// - Parameter leavesWhiteout: whether a whiteout takes its place, since layers below have the name.
  func remove(_ name: CName, in parent: LayerDirectory, leavesWhiteout: Bool) throws(Errno) {
    let former = try parent.attributes()
    try revert(name, in: parent)
    try parent.withDescriptor { parent throws(Errno) in
      if leavesWhiteout {
        try parent.unlocking(".", relocks: true) { () throws(Errno) in try makeWhiteout(name, in: parent) }
      }
      try? parent.setTimes(accessed: .at(former.accessed), modified: .at(former.modified))
    }
  }

  // MARK: - Steps

  /// Calls the body with a free name in the work folder, which it leaves free if it fails.
  private func withTemporary<Result>(_ body: (CName) throws(Errno) -> Result) throws(Errno) -> Result {
    let name = work.freshName
    do throws(Errno) { return try withCName(name, body) } catch {
      try? inWorkFolder { folder throws(Errno) in try work.removeTree(name, in: folder) }
      throw error
    }
  }

  private func inWorkFolder<Result: ~Copyable>(
    _ body: (borrowing Descriptor) throws(Errno) -> Result
  ) throws(Errno) -> Result {
    try layer.gate.call { () throws(Errno) in try work.withFolder(body) }
  }

  private func copyFile(
    _ source: LayerFile, to temporary: CName, _ progress: @escaping (Int) -> Void
  ) throws(Errno) -> FileIdentity {
    let copy = try inWorkFolder { folder throws(Errno) in try folder.createFile(temporary) }
    try fill(copy, from: source, size: nil, nil, progress)
    return try layer.gate.call { () throws(Errno) in
      try copy.synchronize(dataOnly: false)
      return try copy.attributes().identity
    }
  }

  private func copySpecial(
    _ status: FileStatus, _ source: LayerFile, to temporary: CName
  ) throws(Errno) -> FileIdentity {
    let attributes = try CopiedAttributes(status, source)
    if status.kind != .symbolicLink { return try make(.likeSpecial(status), attributes, at: temporary) }
    return try withCName(try source.linkTarget()) { target throws(Errno) in
      try make(.symbolicLink(target: target), attributes, at: temporary)
    }
  }

  private func make(
    _ entry: NewEntry, _ attributes: CopiedAttributes, at temporary: CName
  ) throws(Errno) -> FileIdentity {
    try inWorkFolder { folder throws(Errno) in
      let made = try entry.make(temporary, inWorkFolder: folder)
      try attributes.set(on: made)
      return try made.attributes().identity
    }
  }

  /// Moves an entry of the work folder to a name. What had the name goes, with all that is in it.
  private func place(_ temporary: CName, at name: CName, in parent: LayerDirectory) throws(Errno) {
    try parent.withDescriptor { parent throws(Errno) in
      try work.withFolder { folder throws(Errno) in
        try parent.keepingTimes { () throws(Errno) in
          try parent.unlocking(".", relocks: true) { () throws(Errno) in
            try move(temporary, in: folder, over: name, in: parent)
            try whiteouts.removeMarker(of: name, in: parent)
          }
        }
        // The former entry; or the link, if both are names of one file.
        try work.removeTree([UInt8](bytesOf: temporary), in: folder)
      }
    }
  }

  private func move(
    _ temporary: CName, in folder: borrowing Descriptor, over name: CName, in parent: borrowing Descriptor
  ) throws(Errno) {
    do throws(Errno) {
      return try folder.unlocking(temporary, relocks: true) { () throws(Errno) in
        try folder.rename(temporary, to: name, in: parent)
      }
    } catch {
      let isOtherKind = [.isDirectory, .notDirectory, .directoryNotEmpty, .fileExists].contains(error)
      if !isOtherKind { throw error }
    }
    do throws(Errno) {
      try parent.unlocking(name) { () throws(Errno) in
        try folder.rename(temporary, to: name, in: parent, .exchange)
      }
    } catch {
      if error != .invalidArgument { throw error }
      try moveAside(name, from: parent, to: folder)
      try folder.rename(temporary, to: name, in: parent)
    }
  }

  /// Where the file system cannot exchange two names.
  private func moveAside(
    _ name: CName, from parent: borrowing Descriptor, to folder: borrowing Descriptor
  ) throws(Errno) {
    let aside = work.freshName
    try withCName(aside) { temporary throws(Errno) in
      try parent.unlocking(name) { () throws(Errno) in try parent.rename(name, to: temporary, in: folder) }
    }
    try work.removeTree(aside, in: folder)
  }
}
