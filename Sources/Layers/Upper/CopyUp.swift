import Posix
import Synchronization

/// A file with content that is not visible yet.
private struct PendingFile: ~Copyable {
  /// Open for reading and writing.
  let file: Descriptor
  /// Its name in the work folder; nil for a file without a name.
  let temporary: [UInt8]?
}

extension UpperLayer {
  /// Makes a directory with the attributes of one in a layer below, so that it is merged with that one. Succeeds if the
  /// parent has a directory of the name already.
  /// - Parameter source: the directory below.
  /// - Returns: the attributes of the copy; nil if the parent had a directory.
  @discardableResult
  public func copyUpDirectory(
    _ name: CName, from source: LayerDirectory, to parent: LayerDirectory
  ) throws(Errno) -> FileStatus? {
    let attributes = try CopiedAttributes(source.attributes(), source)
    do throws(Errno) {
      return try copyUp(name, attributes, .directory(mode: 0o700), to: parent)
    } catch {
      guard error == .fileExists, case .directory = try parent.find(name) else { throw error }
      return nil
    }
  }

  /// Copies a non-directory of a layer below.
  /// - Parameters:
  ///   - source: the directory that contains it.
  ///   - found: the name by which it was found there, if that is another spelling.
  ///   - identity: that it must have.
  ///   - size: the most bytes of its content to copy, since it is about to be truncated; nil for all.
  ///   - writer: on whose behalf the content is written; nil for this process's user.
  ///   - staged: copies that were made before, of which this file's is used.
  ///   - progress: is passed the number of bytes of each chunk of content.
  ///   - willPublish: is passed the copy's identity before the copy gets its name. It must not call the layer.
  /// - Returns: the attributes of the copy.
  /// - Throws: EEXIST if the parent has an entry of the name; ESTALE and ENOENT as `LayerDirectory.openFile`.
  public func copyUp(
    _ name: CName, from source: LayerDirectory, as found: CName? = nil, identity: FileIdentity,
    to parent: LayerDirectory, size: UInt64?, as writer: EntryOwner? = nil, staged: StagedCopies? = nil,
    progress: ((Int) -> Void)? = nil, willPublish: ((FileIdentity) -> Void)? = nil
  ) throws(Errno) -> FileStatus {
    let found = found ?? name
    let status = try source.attributes(of: found, identity: identity)
    switch status.kind {
    case .regular:
      if let copy = try staged?.publish(name, of: source, status, to: parent, willPublish) { return copy }
      let file = try source.openFile(found, identity: identity)
      return try copyUpContent(name, file, to: parent, size: size, writer, progress, willPublish)
    case .symbolicLink:
      let link = try source.openPath(found, identity: identity)
      return try copyUpSymbolicLink(name, status, link, to: parent, willPublish)
    case .directory, nil: throw .staleFileHandle
    default:
      let attributes = try CopiedAttributes(status, source.openPath(found, identity: identity))
      return try copyUp(name, attributes, .likeSpecial(status), to: parent, willPublish)
    }
  }

  private func copyUpSymbolicLink(
    _ name: CName, _ status: FileStatus, _ link: LayerFile, to parent: LayerDirectory,
    _ willPublish: ((FileIdentity) -> Void)?
  ) throws(Errno) -> FileStatus {
    let attributes = try CopiedAttributes(status, link)
    let target = try link.linkTarget()
    return try withCName(target) { target throws(Errno) in
      try copyUp(name, attributes, .symbolicLink(target: target), to: parent, willPublish)
    }
  }

  /// Makes a copy without content in the work folder and moves it into place.
  /// - Parameter entry: the copy, without attributes.
  @discardableResult
  private func copyUp(
    _ name: CName, _ attributes: CopiedAttributes, _ entry: NewEntry, to parent: LayerDirectory,
    _ willPublish: ((FileIdentity) -> Void)? = nil
  ) throws(Errno) -> FileStatus {
    try parent.withDescriptor { parent throws(Errno) in
      try work.withName { folder, temporary throws(Errno) in
        let made = try entry.make(temporary, inWorkFolder: folder)
        do throws(Errno) {
          try attributes.set(on: made)
          if let willPublish { willPublish(try made.attributes().identity) }
          try show(name, in: parent) { () throws(Errno) in
            try folder.unlocking(temporary, relocks: true) { () throws(Errno) in
              try folder.renameNew(temporary, to: name, in: parent)
            }
          }
          return try made.attributes()
        } catch {
          try? work.removeTree([UInt8](bytesOf: temporary), in: folder)
          throw error
        }
      }
    }
  }

  /// Runs the body, which gives a copy its name, and restores the times of its directory, as overlayfs does.
  /// - Throws: EEXIST also if the name was hidden by a marker meanwhile.
  func show(
    _ name: CName, in directory: borrowing Descriptor, _ body: () throws(Errno) -> Void
  ) throws(Errno) {
    try directory.keepingTimes { () throws(Errno) in
      try body()
      // A copy beside a marker would bring back what was removed.
      if whiteouts.areMarkers, try whiteouts.hasMarker(of: name, in: directory) {
        _ = try? directory.removeEntry(name)
        throw .fileExists
      }
    }
  }

  /// Makes a directory without a name that has the attributes of one that was removed.
  public func copyUpUnnamed(_ directory: LayerDirectory) throws(Errno) -> MergedDirectory {
    let attributes = try CopiedAttributes(directory.attributes(), directory)
    return try makeUnnamed(attributes, .directory(mode: 0o700)) { made, status in
      let copy = LayerDirectory(
        gate: layer.gate, handle: SharedDescriptor(made), attributes: status, covered: nil)
      return MergedDirectory(parts: [copy])
    }
  }

  /// Makes an entry without content in the work folder, and takes its name away.
  /// - Parameters:
  ///   - entry: the entry, without attributes.
  ///   - result: is passed the entry, opened with `O_PATH`.
  private func makeUnnamed<Result>(
    _ attributes: CopiedAttributes, _ entry: NewEntry,
    as result: (consuming Descriptor, FileStatus) -> Result
  ) throws(Errno) -> Result {
    try layer.root.withDescriptor { _ throws(Errno) in
      try work.withName { folder, name throws(Errno) in
        let made = try entry.make(name, inWorkFolder: folder)
        try folder.remove(name, isDirectory: entry.isDirectory)
        try attributes.set(on: made)
        let status = try made.attributes()
        return result(made, status)
      }
    }
  }

  // MARK: - Content

  private func copyUpContent(
    _ name: CName, _ source: LayerFile, to parent: LayerDirectory, size: UInt64?, _ writer: EntryOwner?,
    _ progress: ((Int) -> Void)?, _ willPublish: ((FileIdentity) -> Void)?
  ) throws(Errno) -> FileStatus {
    let pending = try parent.withDescriptor { parent throws(Errno) in
      try makePending(in: parent, isLinkable: true)
    }
    let temporary = pending.temporary
    do throws(Errno) {
      try fill(pending.file, from: source, size: size, writer, progress)
      let path = try parent.gate.call { () throws(Errno) in try pending.file.reopened([.pathOnly]) }
      // As long as it is open for writing, it could not be executed.
      close(pending)
      return try parent.withDescriptor { parent throws(Errno) in
        if let willPublish { willPublish(try path.attributes().identity) }
        try publish(path, temporary, as: name, in: parent)
        return try path.attributes()
      }
    } catch {
      discard(temporary)
      throw error
    }
  }

  private func close(_ pending: consuming PendingFile) { layer.gate.close(pending.file.release()) }

  /// Copies an open non-directory that has lost its name to one without a name.
  /// - Parameters:
  ///   - size: as for `copyUp`.
  ///   - writer: the same.
  /// - Returns: the copy; a regular file is open for reading and writing.
  public func copyUpUnnamed(
    _ file: LayerFile, size: UInt64?, as writer: EntryOwner? = nil
  ) throws(Errno) -> LayerFile {
    let status = try file.attributes()
    if !status.isRegular { return try copyUpUnnamedSpecial(file, status) }
    let pending = try layer.root.withDescriptor { root throws(Errno) in
      try makePending(in: root, isLinkable: false)
    }
    discard(pending.temporary)
    try fill(pending.file, from: file, size: size, writer)
    return LayerFile(pending.file, nil, layer.gate)
  }

  private func copyUpUnnamedSpecial(_ file: LayerFile, _ status: FileStatus) throws(Errno) -> LayerFile {
    let attributes = try CopiedAttributes(status, file)
    let gate = layer.gate
    let asFile = { (made: consuming Descriptor, status: FileStatus) in LayerFile(made, status, gate) }
    if status.kind != .symbolicLink { return try makeUnnamed(attributes, .likeSpecial(status), as: asFile) }
    return try withCName(try file.linkTarget()) { target throws(Errno) in
      try makeUnnamed(attributes, .symbolicLink(target: target), as: asFile)
    }
  }

  private func makePending(
    in parent: borrowing Descriptor, isLinkable: Bool
  ) throws(Errno) -> PendingFile {
    if hasUnnamedFiles.load(ordering: .relaxed) {
      do throws(Errno) {
        return PendingFile(file: try parent.createUnnamedFile(isLinkable: isLinkable), temporary: nil)
      } catch {
        let isUnsupported = [.notSupported, .isDirectory, .invalidArgument].contains(error)
        if !isUnsupported { throw error }
        hasUnnamedFiles.store(false, ordering: .relaxed)
      }
    }
    return try work.withName { folder, temporary throws(Errno) in
      PendingFile(file: try folder.createFile(temporary), temporary: [UInt8](bytesOf: temporary))
    }
  }

  /// Copies content and attributes; from the beginning if the source was changed meanwhile, unless it does not stop to
  /// change.
  func fill(
    _ copy: borrowing Descriptor, from source: LayerFile, size: UInt64?, _ writer: EntryOwner?,
    _ progress: ((Int) -> Void)? = nil, synchronizes: Bool = true
  ) throws(Errno) {
    for isLast in [false, false, true] {
      let attributes = try CopiedAttributes(source.attributes(), source)
      var content = try ContentCopy(of: source, to: self, as: writer, size: size, progress: progress)
      try content.run(to: copy, synchronizes: synchronizes)
      let present = try source.attributes()
      if isLast || (present.changed, present.size) == (attributes.status.changed, attributes.status.size) {
        return try layer.gate.call { () throws(Errno) in try attributes.set(on: copy) }
      }
      try layer.gate.call { () throws(Errno) in try copy.resize(0) }
    }
  }

  private func publish(
    _ file: borrowing Descriptor, _ temporary: [UInt8]?, as name: CName, in parent: borrowing Descriptor
  ) throws(Errno) {
    try show(name, in: parent) { () throws(Errno) in
      guard let temporary else { return try parent.link(file, as: name) }
      try work.withName { folder, _ throws(Errno) in
        try withCName(temporary) { temporary throws(Errno) in
          try folder.renameNew(temporary, to: name, in: parent)
        }
      }
    }
  }

  /// Removes a name from the work folder.
  func discard(_ temporary: [UInt8]?) {
    guard let temporary else { return }
    try? layer.gate.call { () throws(Errno) in
      try work.withName { folder, _ throws(Errno) in
        try withCName(temporary) { temporary throws(Errno) in try folder.remove(temporary, isDirectory: false)
        }
      }
    }
  }
}
