import Posix

/// Tables of strings that programs write in a mount that merges them.
extension UpperLayer {
  /// Whether a table can be marked while programs write it.
  public var canMarkTables: Bool {
    do throws(Errno) {
      try layer.root.withDescriptor { root throws(Errno) in
        let file = try withCName(root.procPath) { path throws(Errno) in try Descriptor.temporary(in: path) }
        try file.markAsStaged()
      }
      return true
    } catch {
      return false
    }
  }

  /// Marks a table of this layer that is about to be written.
  public func markTable(_ file: some ChangeableEntry) throws(Errno) {
    try file.withDescriptor { file throws(Errno) in try file.markAsStaged() }
  }

  public func unmarkTable(_ file: some ChangeableEntry) throws(Errno) {
    try file.withDescriptor { file throws(Errno) in try file.removeStagingMark() }
  }

  /// Copies a table as the mount shows it, which is merged or one of a layer below, and marks the copy.
  /// - Parameters:
  ///   - source: the directory that contains it, or the topmost of the merged tables.
  ///   - found: the name by which it was found there.
  ///   - table: what was found.
  ///   - replaces: whether this layer has a part of it, which the copy replaces.
  ///   - size: as for `copyUp`, as the other parameters.
  /// - Throws: EEXIST if the parent has an entry of the name that is not to be replaced; ESTALE as `LayerDirectory.openFile`.
  public func copyUpTable(
    _ name: CName, from source: LayerDirectory, as found: CName, _ table: FileStatus, replaces: Bool,
    to parent: LayerDirectory, size: UInt64?, as writer: EntryOwner?,
    willPublish: ((FileIdentity) -> Void)?
  ) throws(Errno) -> FileStatus {
    let content = try source.openFile(found, identity: table.identity)
    return try withPendingTable { file, temporary throws(Errno) in
      try fill(file, from: content, size: size, writer)
      if table.identity.isMergedTable { try copyAttributes(of: found, in: source, to: file, table) }
      return try parent.withDescriptor { parent throws(Errno) in
        try file.markAsStaged()
        if let willPublish { willPublish(try file.attributes().identity) }
        try work.withFolder { folder throws(Errno) in
          if replaces {
            try parent.keepingTimes { () throws(Errno) in try folder.rename(temporary, to: name, in: parent) }
          } else {
            try show(name, in: parent) { () throws(Errno) in
              try folder.renameNew(temporary, to: name, in: parent)
            }
          }
        }
        return try file.attributes()
      }
    }
  }

  /// A merged table shows no extended attributes, but keeps those of the topmost one.
  private func copyAttributes(
    of found: CName, in source: LayerDirectory, to copy: borrowing Descriptor, _ table: FileStatus
  ) throws(Errno) {
    let topmost = try source.attributes(of: found)
    let file = try source.openPath(found, identity: topmost.identity)
    let attributes = try CopiedAttributes(table, file)
    try layer.gate.call { () throws(Errno) in try attributes.set(on: copy) }
  }

  /// Replaces the content of a table, whole or not at all. The file is another one then, without the mark.
  /// - Throws: ESTALE if the name has another file by now.
  public func replaceTable(
    _ name: CName, identity: FileIdentity, with content: [UInt8], in parent: LayerDirectory
  ) throws(Errno) {
    let former = try parent.openPath(name, identity: identity)
    let attributes = try CopiedAttributes(former.attributes(), former)
    try withPendingTable { file, temporary throws(Errno) in
      try layer.gate.call { () throws(Errno) in
        try content.withBytes { bytes throws(Errno) in try file.write(bytes, at: 0) }
        try file.synchronize(dataOnly: true)
        try attributes.set(on: file)
      }
      try parent.withDescriptor { parent throws(Errno) in
        try Self.check(name, identity, in: parent)
        try work.withFolder { folder throws(Errno) in
          try parent.keepingTimes { () throws(Errno) in try folder.rename(temporary, to: name, in: parent) }
        }
      }
    }
  }

  /// Removes a table, so that those of the layers below show.
  /// - Throws: as `replaceTable`.
  public func removeTable(
    _ name: CName, identity: FileIdentity, from parent: LayerDirectory
  ) throws(Errno) {
    try parent.withDescriptor { parent throws(Errno) in
      try Self.check(name, identity, in: parent)
      try parent.keepingTimes { () throws(Errno) in try parent.remove(name, isDirectory: false) }
    }
  }

  private static func check(
    _ name: CName, _ identity: FileIdentity, in parent: borrowing Descriptor
  ) throws(Errno) {
    let present = try parent.open(name, [.pathOnly, .noFollow]).attributes()
    if present.identity != identity { throw .staleFileHandle }
  }

  /// Calls the body with an empty file in the work folder, which is removed if the body fails.
  private func withPendingTable<Result>(
    _ body: (borrowing Descriptor, CName) throws(Errno) -> Result
  ) throws(Errno) -> Result {
    let temporary = work.freshName
    let file = try layer.gate.call { () throws(Errno) in
      try work.withFolder { folder throws(Errno) in
        try withCName(temporary) { name throws(Errno) in try folder.createFile(name) }
      }
    }
    do throws(Errno) {
      return try withCName(temporary) { name throws(Errno) in try body(file, name) }
    } catch {
      discard(temporary)
      throw error
    }
  }
}
