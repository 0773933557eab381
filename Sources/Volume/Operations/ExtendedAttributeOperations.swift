import Bundles
import Fuse
import Glibc
import Layers
import Posix

/// GETXATTR and LISTXATTR: the backing files' attributes, and those that say where an entry comes from.
struct ExtendedAttributeOperations: Sendable {
  let store: NodeStore
  let types: MIMETypes
  /// nil for a read-only mount.
  let writer: Writer?
  let mode: ExtendedAttributeMode

  private var isEnabled: Bool { mode != .off }
  /// Whether there are attributes of the mount's own.
  private var hasOwn: Bool { mode != .layers }

  /// bundlefs's own attributes. A backing file's attribute of such a name is hidden.
  private enum Provenance: String, CaseIterable {
    /// The path of the layer that the entry comes from; of a directory, that of its topmost part.
    case layer = "user.bundlefs.layer"
    case path = "user.bundlefs.path"
    /// bundlefs's version; of the root only.
    case version = "user.bundlefs.version"
  }

  /// The MIME type of a regular file (freedesktop.org's name): the file's own attribute, or else the one found by
  /// name and content.
  private static let typeAttribute = "user.mime_type"

  func read(_ name: CName, of node: NodeID, size: Int, _ reply: consuming Reply<ReplyKind.ExtendedAttribute>)
  {
    let value: [UInt8]
    do throws(Errno) {
      guard isEnabled else { throw .noFunction }
      if node.isReserved { throw .noData }
      value = try store.evictingOnDemand { () throws(Errno) in try self.value(of: name, node, size: size) }
      if ACLAttribute.isAccess(name) { store.recordACL(of: node) }
    } catch {
      return reply.fail(error)
    }
    reply.send(value, size: size)
  }

  func list(of node: NodeID, size: Int, _ reply: consuming Reply<ReplyKind.ExtendedAttribute>) {
    let names: [UInt8]
    do throws(Errno) {
      guard isEnabled else { throw .noFunction }
      names =
        node.isReserved ? [] : try store.evictingOnDemand { () throws(Errno) in try self.names(of: node) }
    } catch {
      return reply.fail(error)
    }
    reply.send(names, size: size)
  }

  func set(
    _ name: CName, of node: NodeID, _ value: UnsafeRawBufferPointer, flags: CInt,
    _ reply: consuming Reply<ReplyKind.Status>
  ) {
    guard let writer = writer(of: node) else { return reply.fail(.readOnlyFileSystem) }
    if !isEnabled { return reply.fail(.noFunction) }
    writer.files.setExtendedAttribute(name, of: node, value, flags: flags, reply)
  }

  func remove(_ name: CName, of node: NodeID, _ reply: consuming Reply<ReplyKind.Status>) {
    guard let writer = writer(of: node) else { return reply.fail(.readOnlyFileSystem) }
    if !isEnabled { return reply.fail(.noFunction) }
    writer.files.removeExtendedAttribute(name, of: node, reply)
  }

  private func writer(of node: NodeID) -> Writer? {
    node.isReserved ? nil : writer
  }

  // MARK: - Values

  private func value(of name: CName, _ node: NodeID, size: Int) throws(Errno) -> [UInt8] {
    if hasOwn, strncmp(name, "user.bundlefs.", 14) == 0,
      let provenance = Provenance(rawValue: String(cString: name)),
      let value = try value(of: provenance, node)
    {
      return value
    }
    // In the mount it would mean nothing.
    if ReservedAttribute.isMarker(name) || store.shownOwners?.hides(name) == true { throw .noData }
    if let owners = store.shownOwners, ACLAttribute.isAccess(name) {
      return try shownACL(name, node, owners)
    }
    do throws(Errno) {
      // The kernel asks so for the capabilities of every file at its first write. It clears as large a buffer as is given.
      if size == 0 {
        return try readExtendedAttribute { buffer throws(Errno) in
          try backingValue(of: name, node, into: buffer)
        }
      }
      return try withUnsafeTemporaryBytes(size) { buffer throws(Errno) in
        [UInt8](buffer.prefix(try backingValue(of: name, node, into: buffer)))
      }
    } catch {
      // The kernel takes EOPNOTSUPP for an ACL as a failed permission check.
      if error == .notSupported, strncmp(name, "system.posix_acl_", 17) == 0 { throw .noData }
      if hasOwn, error == .notSupported || error == .noData, strcmp(name, Self.typeAttribute) == 0 {
        return Array(try mimeType(of: node).utf8)
      }
      throw error
    }
  }

  private func shownACL(_ name: CName, _ node: NodeID, _ owners: ShownOwners) throws(Errno) -> [UInt8] {
    let value: [UInt8]
    do throws(Errno) {
      value = try readExtendedAttribute { buffer throws(Errno) in
        try backingValue(of: name, node, into: buffer)
      }
    } catch { throw error == .notSupported ? .noData : error }
    guard let list = AccessControlList(value) else { throw .ioError }
    return owners.shown(list, of: try store.ownAttributes(of: node)).value
  }

  private func backingValue(
    of attribute: CName, _ node: NodeID, into buffer: UnsafeMutableRawBufferPointer
  ) throws(Errno) -> Int {
    if try store.isDirectory(node) {
      return try store.merged(of: node).attributeSource.extendedAttribute(attribute, into: buffer)
    }
    let identity = try store.identity(of: node)
    if let file = try store.presentFile(of: node) ?? writer?.descriptors.file(of: node, identity: identity) {
      return try file.extendedAttribute(attribute, into: buffer)
    }
    return try store.withLocation(of: node) { directory, name, identity throws(Errno) in
      try directory.extendedAttribute(attribute, of: name, identity: identity, into: buffer)
    }
  }

  private func value(of provenance: Provenance, _ node: NodeID) throws(Errno) -> [UInt8]? {
    switch provenance {
    case .layer:
      if let paths = try mergedOrigin(of: node) { return paths }
      return store.stack[try origin(of: node)].path
    case .path:
      let layer = try origin(of: node)
      return store.stack[layer].path(of: try store.path(of: node, spelledIn: layer))
    case .version: return node == .root ? Array(Volume.version.utf8) : nil
    }
  }

  /// The paths of all layers that a merged table comes from, the topmost first, separated by colons; nil for others.
  private func mergedOrigin(of node: NodeID) throws(Errno) -> [UInt8]? {
    guard let tables = store.stack.tables else { return nil }
    if try store.isDirectory(node) { return nil }
    let identity = try store.table.withLock { table throws(Errno) in table[try table.slot(of: node)].identity
    }
    guard identity.isMergedTable else { return nil }
    if tables.layers(of: identity).isEmpty {
      try store.withLocation(of: node) { (_, _, _) throws(Errno) in () }
    }
    let paths = tables.layers(of: identity).map { store.stack[$0].path }
    return paths.isEmpty ? nil : Array(paths.joined(separator: [UInt8(ascii: ":")]))
  }

  /// The topmost layer that has the node.
  private func origin(of node: NodeID) throws(Errno) -> Int {
    if try store.isDirectory(node) { return try store.merged(of: node).attributeSource.layer }
    return try store.table.withLock { table throws(Errno) in Int(table[try table.slot(of: node)].layer) }
  }

  /// The MIME type of a regular file without an attribute for it.
  /// - Throws: ENODATA for another kind of node.
  private func mimeType(of node: NodeID) throws(Errno) -> String {
    guard try store.kind(of: node) == .regular else { throw .noData }
    let name = try store.table.withLock { table throws(Errno) in table.name(of: try table.slot(of: node)) }
    return try types.type(for: name) { () throws(Errno) in
      let count = MIMETypes.leadingCount
      if let file = try store.presentFile(of: node) { return try file.leadingBytes(count) }
      return try store.withLocation(of: node) { directory, name, identity throws(Errno) in
        try directory.openFile(name, identity: identity).leadingBytes(count)
      }
    }
  }

  // MARK: - Names

  private func names(of node: NodeID) throws(Errno) -> [UInt8] {
    var backing: [UInt8]
    do throws(Errno) { backing = try backingNames(of: node) } catch {
      // A file system without xattrs.
      guard error == .notSupported else { throw error }
      backing = []
    }
    var names: [UInt8] = []
    var hasType = try store.kind(of: node) != .regular
    for name in backing.split(separator: 0) {
      let text = String(decoding: name, as: UTF8.self)
      if ReservedAttribute.isMarker(name) || hasOwn && Provenance(rawValue: text) != nil { continue }
      if store.shownOwners?.hides(text) == true { continue }
      if text == Self.typeAttribute { hasType = true }
      names += name
      names.append(0)
    }
    if mode != .listed { return names }
    for name in try provenances(of: node).map(\.rawValue) + (hasType ? [] : [Self.typeAttribute]) {
      names += name.utf8
      names.append(0)
    }
    return names
  }

  private func backingNames(of node: NodeID) throws(Errno) -> [UInt8] {
    if try store.isDirectory(node) {
      return try store.merged(of: node).attributeSource.extendedAttributeNames()
    }
    if let file = try store.presentFile(of: node) { return try file.extendedAttributeNames() }
    return try store.withLocation(of: node) { directory, name, identity throws(Errno) in
      try directory.openPath(name, identity: identity).extendedAttributeNames()
    }
  }

  /// Linux allows `user.` attributes on regular files and directories only.
  private func provenances(of node: NodeID) throws(Errno) -> [Provenance] {
    let kind = try store.kind(of: node)
    guard kind == .regular || kind == .directory else { return [] }
    return node == .root ? [.layer, .path, .version] : [.layer, .path]
  }
}
