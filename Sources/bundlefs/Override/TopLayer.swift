import ControlClient
import Glibc
import Layers
import Posix
import Routing

/// The top layer of a mount, for commands that change it directly, whether the mount takes changes or not.
struct TopLayer {
  let mountPoint: MountPoint
  /// The layer's path for messages.
  let path: String
  let upper: UpperLayer
  /// The mount's device number.
  let device: UInt64
  /// Whether names are compared without case.
  let foldsNames: Bool
  /// The names in the mount's root that are its own: the control file, and the resource directory.
  let reserved: Set<[UInt8]>
  /// What the mount says of itself.
  let status: JSONValue

  /// Asks the mount for its layers.
  /// - Parameter former: the path of a layer to be changed that was the top one; nil for the present one.
  init(of mountPoint: MountPoint, at former: [UInt8]? = nil) throws(Failure) {
    self.mountPoint = mountPoint
    let (status, device) = try Failure.naming(mountPoint.path.shown) { () throws(Errno) in
      let root = try mountPoint.open([.read, .directory])
      guard let status = JSONValue(try StatusClient.read(.json, of: root)) else {
        throw Errno(rawValue: EPROTO)
      }
      return (status, try root.device())
    }
    guard case .array(let layers) = status["layers"], let top = layers.first, let path = top["path"]?.string
    else { throw .failed("\(mountPoint.path.shown): the daemon does not report its layers") }
    if former == nil, layers.count < 2 {
      throw .failed("\(mountPoint.path.shown): there is no layer above MAIN; mount with 'substitution=DIR'")
    }
    if former == nil, case .object = top["archive"] {
      throw .failed("\(path): the top layer is an archive, which cannot be changed; add a directory above it")
    }
    if former == nil, let place = top["place"]?.string {
      throw .failed(
        "\(path): the top layer is laid at '\(place)', so it cannot have entries of the whole mount; add a directory without '@/' "
          + "above it")
    }
    let names = [status["control"]?.string, (status["bundle"]?["scheme"]?.string).map { "\($0):" }]
    reserved = Set(names.compactMap { $0.map { Array($0.utf8) } })
    (self.path, self.device, self.status) = (former.map { String(escaping: $0) } ?? path, device, status)
    foldsNames = status["options"]?["case"]?.string == "insensitive"
    upper = try Self.open(
      former ?? mountPoint.bytes(of: path), shown: self.path, outside: device, foldsNames: foldsNames)
    do throws(Failure) { try checkOwner() } catch {
      upper.close()
      throw error
    }
  }

  /// Root must not change for a user what that user may not: the daemon, which tells of the layer, has the user's rights, and
  /// the user can exchange a directory on the way to the layer.
  private func checkOwner() throws(Failure) {
    guard geteuid() == 0, let user = MountTableEntry.top(at: mountPoint.path)?.user, user != 0 else { return }
    let owner = try Failure.naming(path) { () throws(Errno) in try upper.layer.root.attributes().owner }
    if owner == user { return }
    throw .failed(
      "\(path): the layer belongs to user \(owner), and the mount to user \(user); run the command as that user"
    )
  }

  /// The mount, to be copied from. To be closed soon: it keeps the mount busy.
  func view() throws(Failure) -> DirectoryLayer {
    try Failure.naming(mountPoint.path.shown) { () throws(Errno) in
      try DirectoryLayer(
        path: mountPoint.path, index: 1, covered: nil, clonesMount: false, foldsNames: foldsNames)
    }
  }

  /// Opens a layer to be changed.
  /// - Parameters:
  ///   - device: the mount's, which may cover the layer.
  ///   - remedy: what to do if it does.
  static func open(
    _ path: [UInt8], shown: String, index: Int = 0, outside device: UInt64, foldsNames: Bool,
    remedy: String = "this layer, its top one; change it through the mount ('writable')"
  ) throws(Failure) -> UpperLayer {
    let layer = try Failure.naming(shown) { () throws(Errno) in
      try DirectoryLayer(path: path, index: index, covered: nil, isWritable: true, foldsNames: foldsNames)
    }
    if layer.root.identity.device == device { throw .failed("\(shown): the mount covers \(remedy)") }
    do throws(Errno) { return try UpperLayer(layer) } catch {
      guard let fault = UpperLayer.workFolderFault(in: layer) else { throw .failed("\(shown): \(error)") }
      throw .failed(fault.message(path, remedy: "run the command as the user that mounts, or remove it"))
    }
  }

  /// The components of the paths that a command is given.
  /// - Parameter command: its name.
  func components(of given: [[UInt8]], _ command: String) throws(Failure) -> [[[UInt8]]] {
    var paths: [[[UInt8]]] = []
    for path in given {
      guard let components = mountPoint.componentsInside(path) else {
        throw .failed("\(path.shown): not in \(mountPoint.path.shown)")
      }
      if components.contains(Array("..".utf8)) {
        throw .usage("a PATH of '\(command)' must not contain '..'")
      }
      if let first = components.first, isReserved(first) {
        throw .failed("\(path.shown): belongs to the mount itself, not to a layer")
      }
      paths.append(components)
    }
    return paths
  }

  private func isReserved(_ name: [UInt8]) -> Bool {
    reserved.contains { $0 == name || (foldsNames && NameFolding.areEqual($0, name)) }
  }

  /// Ends the access to the layer, and returns when the mount shows all that was changed.
  func finish() {
    upper.close()
    // The control file of a mount with `ro` takes no commands; the change shows as any other.
    try? ControlFileCommand.sync([mountPoint.path]).run()
  }
}

extension TopLayer {
  /// The layer's directory at a path: the one of these spellings, if there are several that are one name.
  /// - Throws: ELOOP for the mount itself.
  func folder(at path: [[UInt8]]) throws(Errno) -> LayerDirectory? {
    let found = try upper.directories(at: path, outside: device)
    return (found.first { $0.path == path } ?? found.first)?.directory
  }
}

extension MountPoint {
  /// The path of the top layer as it is, which the daemon tells with the escapes of invalid UTF-8.
  fileprivate func bytes(of shown: String) -> [UInt8] {
    let found = try? withCName(path) { path throws(Errno) in
      let root = try Descriptor.open(path, [.read, .directory])
      return try root.extendedAttribute("user.bundlefs.layer")
    }
    guard let found = found ?? nil, String(escaping: found) == shown else { return Array(shown.utf8) }
    return found
  }
}

/// Paths for messages.
func shown(_ path: [[UInt8]]) -> String { path.isEmpty ? "/" : String(escaping: path.joinedPath) }
