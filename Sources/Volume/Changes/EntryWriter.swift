import Fuse
import Glibc
import Layers
import Posix

/// Requests that change what names stand for, on a writable mount.
struct EntryWriter: Sendable {
  let store: NodeStore
  let copyUp: CopyUp
  let descriptors: WriteDescriptors
  let reserved: ReservedNames

  private var upper: UpperLayer { copyUp.upper }
  private var own: OwnChanges? { copyUp.own }

  // MARK: - New entries

  func make(
    _ entry: NewEntry, _ name: CName, in parent: NodeID, _ reply: consuming Reply<ReplyKind.Entry>
  ) {
    let owner = EntryOwner(reply.credentials)
    do throws(Errno) {
      try allow(name, in: parent)
      let directory = try copyUp.directory(parent)
      let isResent = reply.isResent
      let made = try changing([EntryKey(parent: parent, name)]) { () throws(Errno) in
        do throws(Errno) {
          try store.awaitingFreedSpace { () throws(Errno) in try make(entry, name, in: directory, owner) }
        } catch {
          // A predecessor has made it.
          guard error == .fileExists, isResent else { throw error }
        }
        store.recordChange(in: [parent])
        return try self.entry(name, in: parent, isNew: !isResent)
      }
      if !reply.send(made) { store.forget(made.node, lookups: 1) }
    } catch {
      reply.fail(error)
    }
  }

  private func make(
    _ entry: NewEntry, _ name: CName, in directory: MergedDirectory, _ owner: EntryOwner
  ) throws(Errno) {
    switch entry {
    case .node(let mode, let device):
      try upper.makeNode(name, in: directory, mode: mode, device: device, owner)
    case .directory(let mode): try upper.makeDirectory(name, in: directory, mode: mode, owner)
    case .symbolicLink(let target): try upper.makeSymbolicLink(name, in: directory, target: target, owner)
    }
  }

  func create(
    _ name: CName, in parent: NodeID, mode: UInt32, isExclusive: Bool,
    _ reply: consuming Reply<ReplyKind.Create>
  ) {
    let owner = EntryOwner(reply.credentials)
    do throws(Errno) {
      try allow(name, in: parent)
      let directory = try copyUp.directory(parent)
      let mayExist = !isExclusive || reply.isResent
      let made = try changing([EntryKey(parent: parent, name)]) { () throws(Errno) in
        var isNew = true
        do throws(Errno) {
          try store.awaitingFreedSpace { () throws(Errno) in
            try upper.makeNode(name, in: directory, mode: FileKind.regular.rawValue | mode, device: 0, owner)
          }
        } catch {
          // It has just appeared in a layer, or a predecessor has made it.
          guard error == .fileExists, mayExist else { throw error }
          isNew = false
        }
        store.recordChange(in: [parent])
        return try self.entry(name, in: parent, isNew: isNew)
      }
      guard made.attributes.attributes.isRegular else {
        store.forget(made.node, lookups: 1)
        throw .fileExists
      }
      if !reply.send(made) { store.forget(made.node, lookups: 1) }
    } catch {
      reply.fail(error)
    }
  }

  func makeLink(
    to node: NodeID, _ name: CName, in parent: NodeID, _ reply: consuming Reply<ReplyKind.Entry>
  ) {
    do throws(Errno) {
      try allow(name, in: parent)
      try copyUp.file(node)
      let directory = try copyUp.directory(parent)
      let isResent = reply.isResent
      let made = try changing([EntryKey(parent: parent, name)]) { () throws(Errno) in
        do throws(Errno) {
          try store.withUpperFile(of: node) { file throws(Errno) in
            try upper.makeLink(name, in: directory, to: file)
          }
        } catch {
          guard error == .fileExists, isResent else { throw error }
        }
        store.recordChange(in: [parent])
        // Its link count.
        store.recordAttributeChange(of: node)
        return try entry(name, in: parent, isNew: false)
      }
      if !reply.send(made) { store.forget(made.node, lookups: 1) }
    } catch {
      reply.fail(error)
    }
  }

  /// The entry that has a name now; its node has one lookup more.
  /// - Parameter isNew: whether it was made just now.
  private func entry(_ name: CName, in parent: NodeID, isNew: Bool) throws(Errno) -> EntryReply {
    try store.evictingOnDemand { () throws(Errno) in
      let merged = try store.merged(of: parent)
      guard let found = try merged.lookup(name) else { throw .noSuchFileOrDirectory }
      own?.recordEntry(found.upperIdentity, at: EntryKey(parent: parent, name))
      let entry = try store.entry(found, name, in: parent, merged)
      if isNew { own?.recordNewFile(entry.node, entry.attributes.attributes) }
      return entry
    }
  }

  /// - Throws: EPERM for the names of bundlefs and for those of whiteouts, which no entry can have; ENAMETOOLONG.
  private func allow(_ name: CName, in parent: NodeID) throws(Errno) {
    if ResourceDirectoryNodes.contain(parent) { throw .notPermitted }
    if parent == .root, reserved.contains(name) { throw .notPermitted }
    if strncmp(name, ".wh.", 4) == 0 { throw .notPermitted }
    if strlen(name) > NAME_MAX { throw .fileNameTooLong }
  }

  // MARK: - Removal

  func remove(
    _ name: CName, isDirectory: Bool, from parent: NodeID, _ reply: consuming Reply<ReplyKind.Status>
  ) {
    do throws(Errno) {
      try allow(name, in: parent)
      let directory = try copyUp.directory(parent)
      let key = EntryKey(parent: parent, name)
      let isResent = reply.isResent
      try changing([key]) { () throws(Errno) in
        do throws(Errno) { try remove(name, isDirectory, from: directory, key) } catch {
          guard error == .noSuchFileOrDirectory, isResent else { throw error }
        }
        own?.recordEntry(name, in: directory, at: key)
        store.recordRemoval(of: key.name, in: parent)
      }
    } catch {
      return reply.fail(error)
    }
    reply.send()
  }

  private func remove(
    _ name: CName, _ isDirectory: Bool, from directory: MergedDirectory, _ key: EntryKey
  ) throws(Errno) {
    if isDirectory { return try upper.removeDirectory(name, from: directory) }
    for file in store.holdFiles(named: key.name, in: key.parent) { descriptors.close(file) }
    try store.awaitingFreedSpace { () throws(Errno) in try upper.remove(name, from: directory) }
  }

  /// Runs the body, which changes names, so that their events are known as ours.
  private func changing<Result>(
    _ keys: [EntryKey], _ body: () throws(Errno) -> Result
  ) throws(Errno) -> Result {
    guard let own else { return try body() }
    return try own.changing(keys, in: store, body)
  }

  // MARK: - Renaming

  func rename(
    _ name: CName, in parent: NodeID, to newName: CName, in newParent: NodeID, _ flags: RenameFlags,
    _ reply: consuming Reply<ReplyKind.Status>
  ) {
    do throws(Errno) {
      // RENAME_WHITEOUT is for file systems that are themselves layers.
      if !flags.isSubset(of: [.noReplace, .exchange]) { throw .invalidArgument }
      try allow(name, in: parent)
      try allow(newName, in: newParent)
      let source = EntryKey(parent: parent, name)
      let target = EntryKey(parent: newParent, newName)
      do throws(Errno) { try rename(name, source, to: newName, target, flags) } catch {
        // A predecessor has renamed it.
        guard error == .noSuchFileOrDirectory, reply.isResent,
          try store.merged(of: newParent).lookup(newName) != nil
        else { throw error }
      }
    } catch {
      return reply.fail(error)
    }
    reply.send()
  }

  private func rename(
    _ name: CName, _ source: EntryKey, to newName: CName, _ target: EntryKey, _ flags: RenameFlags
  ) throws(Errno) {
    let former = try identity(of: name, source)
    if let former, former == (try identity(of: newName, target)) { return }
    try copyFileUp(name, source)
    if flags.contains(.exchange) { try copyFileUp(newName, target) }
    let directory = try copyUp.directory(source.parent)
    let newDirectory = try copyUp.directory(target.parent)
    if !flags.contains(.exchange) {
      for file in store.holdFiles(named: target.name, in: target.parent) { descriptors.close(file) }
    }
    try changing([source, target]) { () throws(Errno) in
      try upper.rename(name, in: directory, to: newName, in: newDirectory, flags)
      own?.recordEntry(name, in: directory, at: source)
      own?.recordEntry(newName, in: newDirectory, at: target)
      if flags.contains(.exchange) {
        store.recordExchange(source, target)
      } else {
        store.recordRename(of: source, to: target)
      }
    }
  }

  /// The layer and identity of a non-directory; nil for a directory, or if there is no entry.
  private func identity(of name: CName, _ key: EntryKey) throws(Errno) -> LayerFileIdentity? {
    guard case .file(let layer, let attributes) = try store.merged(of: key.parent).lookup(name) else {
      return nil
    }
    return LayerFileIdentity(layer: layer, identity: attributes.identity)
  }

  private struct LayerFileIdentity: Equatable {
    let layer: Int
    let identity: FileIdentity
  }

  /// Copies a non-directory up, by its node if the kernel knows it.
  private func copyFileUp(_ name: CName, _ key: EntryKey) throws(Errno) {
    let merged = try store.merged(of: key.parent)
    guard case .file(let layer, let attributes) = try merged.lookup(name), layer != 0 else { return }
    if let node = store.file(attributes.identity, layer: layer, named: key) { return try copyUp.file(node) }
    guard let part = merged.part(of: layer) else { throw .staleFileHandle }
    let directory = try copyUp.directory(key.parent)
    _ = try upper.copyUp(name, from: part, identity: attributes.identity, to: directory.top, size: nil)
  }
}

extension Entry {
  /// What the upper layer has of it; nil for nothing.
  fileprivate var upperIdentity: FileIdentity? {
    switch self {
    case .file(let layer, let attributes): layer == 0 ? attributes.identity : nil
    case .directory(let directory, _): directory.isInUpperLayer ? directory.top.identity : nil
    }
  }
}

extension EntryOwner {
  init(_ credentials: Credentials) {
    self.init(user: credentials.user, group: credentials.group, umask: credentials.umask)
  }
}
