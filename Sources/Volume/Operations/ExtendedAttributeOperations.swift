import Bundles
import Fuse
import Glibc
import Layers
import Posix

/// Extended attributes: the backing files' own, and those by which an entry tells where it comes from.
extension Volume {
  /// The attributes that are ours. A backing file's own of such a name is hidden.
  private enum Provenance: String, CaseIterable {
    /// The path of the layer that the entry comes from (a directory: its topmost part).
    case layer = "user.bundlefs.layer"
    /// The path of the entry's real file.
    case path = "user.bundlefs.path"
    /// The program's version; of the root only.
    case version = "user.bundlefs.version"
  }

  /// The MIME type of a regular file (freedesktop.org's name for it): its own, or else ours.
  private static let typeAttribute = "user.mime_type"

  public func getExtendedAttribute(
    _ name: CName, of node: NodeID, size: Int, reply: consuming Reply<ReplyKind.ExtendedAttribute>
  ) {
    let value: [UInt8]
    do throws(Errno) {
      guard options.servesExtendedAttributes else { throw .noFunction }
      if node == ControlFile.node || ResourceFolderNodes.contain(node) { throw .noData }
      value = try extendedAttribute(name, of: node, size: size)
    } catch {
      reply.fail(error)
      return
    }
    reply.send(value, size: size)
  }

  public func listExtendedAttributes(
    of node: NodeID, size: Int, reply: consuming Reply<ReplyKind.ExtendedAttribute>
  ) {
    let names: [UInt8]
    do throws(Errno) {
      guard options.servesExtendedAttributes else { throw .noFunction }
      let isOurs = node == ControlFile.node || ResourceFolderNodes.contain(node)
      names = isOurs ? [] : try extendedAttributeNames(of: node)
    } catch {
      reply.fail(error)
      return
    }
    reply.send(names, size: size)
  }

  private func extendedAttribute(_ name: CName, of node: NodeID, size: Int) throws(Errno) -> [UInt8] {
    if strncmp(name, "user.bundlefs.", 14) == 0,
      let provenance = Provenance(rawValue: String(cString: name)),
      let value = try value(of: provenance, node)
    {
      return value
    }
    do throws(Errno) {
      // XATTR_SIZE_MAX bounds every value.
      return try withUnsafeTemporaryBytes(size == 0 ? 65536 : size) { buffer throws(Errno) in
        [UInt8](buffer.prefix(try backingAttribute(name, of: node, into: buffer)))
      }
    } catch {
      // The kernel takes "not supported" for an ACL as a failure to check permissions.
      if error == .notSupported, strncmp(name, "system.posix_acl_", 17) == 0 { throw .noData }
      if error == .notSupported || error == .noData, strcmp(name, Self.typeAttribute) == 0 {
        return Array(try mimeType(of: node).utf8)
      }
      throw error
    }
  }

  private func backingAttribute(
    _ attribute: CName, of node: NodeID, into buffer: UnsafeMutableRawBufferPointer
  ) throws(Errno) -> Int {
    if try isDirectory(node) {
      return try merged(of: node).top.extendedAttribute(attribute, into: buffer)
    }
    if let file = try presentFile(of: node) {
      return try file.extendedAttribute(attribute, into: buffer)
    }
    return try withPlace(of: node) { directory, name, identity throws(Errno) in
      try directory.openPath(name, identity: identity).extendedAttribute(attribute, into: buffer)
    }
  }

  private func extendedAttributeNames(of node: NodeID) throws(Errno) -> [UInt8] {
    var backing: [UInt8]
    do throws(Errno) {
      backing = try backingAttributeNames(of: node)
    } catch {
      // A layer's file system without xattrs has none; ours are there all the same.
      guard error == .notSupported else { throw error }
      backing = []
    }
    var names: [UInt8] = []
    var hasType = try kind(of: node) != .regular
    for name in backing.split(separator: 0) {
      let text = String(decoding: name, as: UTF8.self)
      if Provenance(rawValue: text) != nil { continue }
      if text == Self.typeAttribute { hasType = true }
      names += name
      names.append(0)
    }
    for name in try listed(node).map(\.rawValue) + (hasType ? [] : [Self.typeAttribute]) {
      names += name.utf8
      names.append(0)
    }
    return names
  }

  private func backingAttributeNames(of node: NodeID) throws(Errno) -> [UInt8] {
    if try isDirectory(node) { return try merged(of: node).top.extendedAttributeNames() }
    if let file = try presentFile(of: node) { return try file.extendedAttributeNames() }
    return try withPlace(of: node) { directory, name, identity throws(Errno) in
      try directory.openPath(name, identity: identity).extendedAttributeNames()
    }
  }

  private func kind(of node: NodeID) throws(Errno) -> FileKind? {
    try table.withLock { table throws(Errno) in table[try table.slot(of: node)].kind }
  }

  /// The MIME type of a regular file that does not tell it itself.
  /// - Throws: ENODATA for another kind of node.
  private func mimeType(of node: NodeID) throws(Errno) -> String {
    guard try kind(of: node) == .regular else { throw .noData }
    let name = try table.withLock { table throws(Errno) in table.name(of: try table.slot(of: node)) }
    return try resources.types.type(for: name) { () throws(Errno) in
      let count = MIMETypes.leadingCount
      if let file = try presentFile(of: node) { return try file.leadingBytes(count) }
      return try withPlace(of: node) { directory, name, identity throws(Errno) in
        try directory.openFile(name, identity: identity).leadingBytes(count)
      }
    }
  }

  /// Linux lets only regular files and directories have `user.` attributes.
  private func listed(_ node: NodeID) throws(Errno) -> [Provenance] {
    let kind = try kind(of: node)
    guard kind == .regular || kind == .directory else { return [] }
    return node == .root ? [.layer, .path, .version] : [.layer, .path]
  }

  private func value(of provenance: Provenance, _ node: NodeID) throws(Errno) -> [UInt8]? {
    switch provenance {
    case .layer: return try origin(of: node).layer.path
    case .path:
      let (layer, names) = try origin(of: node)
      return layer.path(of: names)
    case .version: return node == .root ? Array(Volume.version.utf8) : nil
    }
  }

  /// The layer that an entry comes from, and the names from there to it.
  private func origin(of node: NodeID) throws(Errno) -> (layer: Layer, names: [[UInt8]]) {
    if try isDirectory(node) {
      let path = try path(of: node)
      return (stack.layers[try merged(of: node).top.layer], path)
    }
    return try table.withLock { table throws(Errno) in
      let slot = try table.slot(of: node)
      return (
        stack.layers[Int(table[slot].layer)], table.path(of: table[slot].parent) + [table.name(of: slot)]
      )
    }
  }
}
