import Bundles
import Glibc
import Layers
import Posix
import RemoteFiles
import Routing
import Volume

/// What is to be mounted where: everything that is read from arguments and files before anything is opened.
struct MountPlan {
  let mountPoint: MountPoint
  let arguments: MountArguments
  /// A layer's path as it was given, and resolved.
  struct LayerPath {
    let given: [UInt8]
    let path: [UInt8]
    /// nil for a directory.
    let archive: ArchivePath?
    /// The folder of the mount at which it is laid.
    let place: [[UInt8]]

    /// - Parameter isResolved: whether a predecessor has resolved it, and opened the layer.
    init(_ layer: LaidPath, isResolved: Bool) {
      given = layer.redacted
      place = layer.place
      if isResolved {
        (path, archive) = (layer.path, nil)
        return
      }
      let resolved = MountOptions.resolved(layer.path)
      // One that does not exist yet is still relative.
      let isKept = resolved.first == UInt8(ascii: "/") || RemoteURL.isURL(resolved)
      path = isKept ? resolved : MountPoint.absolute(resolved)
      archive = ArchivePath(path)
    }
  }

  /// Top first, MAIN last.
  let layers: [LayerPath]
  /// Names a path of a layer that a comma, a colon or `@/` has torn, if there is one. Found now, since it may be relative.
  let separatorHint: String?
  /// The directory in which the work folder of the layer is made that takes changes; nil for the layer itself.
  let workDirectory: [UInt8]?
  /// Without what the layers determine.
  let volumeOptions: VolumeOptions
  /// Options for libfuse.
  let sessionOptions: [[UInt8]]
  /// Of encrypted archive entries. They are read now, since the file's path may be relative, and the file may be gone when
  /// a successor starts.
  let passwords: [[UInt8]]
  /// How files on servers are read.
  let remote: RemoteSettings

  init(_ arguments: MountArguments, at mountPoint: MountPoint) throws(Failure) {
    self.arguments = arguments
    self.mountPoint = mountPoint
    let writable = arguments.options.writable
    let paths = arguments.options.layers(above: arguments.main)
    let isResolved = arguments.options.hasResolvedPaths
    if !isResolved { try writable.prepare(paths) }
    layers = paths.map { LayerPath($0, isResolved: isResolved) }
    let areThere = isResolved || layers.allSatisfy { UnescapedSeparator().exists($0.path) }
    let hint = areThere ? nil : paths.lazy.compactMap { UnescapedSeparator().hint(for: $0) }.first
    separatorHint = areThere ? nil : arguments.options.separatorHint ?? hint
    workDirectory = writable != .off ? arguments.options.workDirectory.map(arguments.options.real) : nil
    if let workDirectory, let upper = layers.first, WorkDirectory(workDirectory, for: upper.path) == nil {
      throw .failed(
        "workdir: \(workDirectory.shown) contains the layer \(upper.path.shown) or lies in it; choose another directory"
      )
    }
    volumeOptions = try Self.volumeOptions(arguments, mountPoint)
    sessionOptions = Self.sessionOptions(arguments)
    passwords = try arguments.options.archivePasswordFile.map(PasswordFile.init)?.passwords() ?? []
    remote = RemoteSettings(arguments.options)
    // A successor continues without it: what is cached is served nevertheless.
    if !isResolved, let headers = remote.headers {
      do throws(RemoteFault) { try headers.check() } catch { throw .failed(error.message) }
    }
  }

  /// The arguments with which a newer program continues with the mount, without its own path.
  func arguments(forSuccessorWith memory: CInt) -> [[UInt8]] {
    var options = arguments.options.lasting
    // Its folder is the first of the substitutions.
    if isWritable { options.append(Array("writable".utf8)) }
    if let directory = arguments.options.workDirectory.map(arguments.options.real) {
      options.append(MountOptions.option("workdir", directory))
    }
    options += arguments.options.fileOptions
    let substitutions = layers.dropLast().map { layer in
      MountOption.escape(LaidPath(layer.path, atFolder: layer.place).name)
    }
    if !substitutions.isEmpty {
      options.append(
        Array("substitution=".utf8) + Array(substitutions.joined(separator: [UInt8(ascii: ":")])))
    }
    var list = (["--resume", "\(memory)"] + (isPrivate ? ["--private"] : [])).map { Array($0.utf8) }
    if isDebug { list.append(Array("-d".utf8)) } else if isForeground { list.append(Array("-f".utf8)) }
    if !options.isEmpty {
      list += [Array("-o".utf8), Array(options.joined(separator: [UInt8(ascii: ",")]))]
    }
    return list + [Array("--".utf8), layers[layers.count - 1].path, mountPoint.path]
  }

  /// Whether the mount is in a mount namespace of its own (`bundlefs run`).
  var isPrivate: Bool { arguments.isPrivate }
  /// Whether the topmost layer takes changes.
  var isWritable: Bool { arguments.options.writable != .off }

  var isDebug: Bool { arguments.isDebug || arguments.options.isDebug }
  var isForeground: Bool { arguments.isForeground || isDebug }

  private static func volumeOptions(_ arguments: MountArguments, _ mountPoint: MountPoint) throws(Failure)
    -> VolumeOptions
  {
    let given = arguments.options
    var options = VolumeOptions()
    options.extendedAttributes = given.extendedAttributes
    options.descriptorBudget = DescriptorLimit.raise()
    options.control = given.control
    options.resources = given.resources
    options.resources.mountPoint = mountPoint.path
    options.resources.lookup.userLanguages = Language.ofUser { getenv($0).map { String(cString: $0) } }
    options.control.routes = RouteTable(builtInSchemes: ["bundlefs", given.resources.scheme])
    for path in given.routes { try RoutesFile(path).load(into: &options.control.routes) }
    options.cache = given.cache
    options.passthrough = given.passthrough
    options.renameCopy = UInt64(given.renameCopy)
    options.maxRead = given.maxRead
    options.layerTimeout = given.layerTimeout
    options.skipsOverdueLayers = given.skipsOverdueLayers
    options.announce = given.announceMode
    options.isElsewhere = arguments.isPrivate
    options.isShared = arguments.isShared
    options.shownOwners = given.owners.shown
    options.shown = given.shown.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    options.reusable = given.reusable
    options.shown.append(("fsname", (given.fsname ?? RemoteURL.redacted(given.real(arguments.main))).shown))
    return options
  }

  private static func sessionOptions(_ arguments: MountArguments) -> [[UInt8]] {
    var options = arguments.options.passed
    let source = arguments.options.fsname ?? RemoteURL.redacted(arguments.options.real(arguments.main))
    options.append(Array("fsname=".utf8) + source)
    if let maxRead = arguments.options.maxRead { options.append(Array("max_read=\(maxRead)".utf8)) }
    return options + ["subtype=bundlefs", "default_permissions"].map { Array($0.utf8) }
  }
}
