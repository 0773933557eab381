import Bundles
import Fuse
import Glibc
import Layers
import Posix
import Routing
import Volume

/// `bundlefs MAIN MOUNTPOINT`.
struct MountCommand {
  private let arguments: MountArguments

  init(_ arguments: [[UInt8]]) throws(Failure) { self.arguments = try MountArguments(arguments) }

  /// Returns when the mount ends. Without `-f` it forks, and the parent exits once the mount is usable.
  func run() throws(Failure) {
    if arguments.wantsHelp { return Terminal.print(Help.text) }
    if arguments.wantsVersion { return Terminal.print("bundlefs \(Volume.version)") }
    if let namespace = arguments.namespace { try MountNamespace.enter(namespace) }
    if arguments.options.isRemount { return try remount() }
    let inherited = InheritedDescriptors()
    // All checks come before the mount, so that a failure leaves nothing behind.
    let mountPoint = try MountPoint(arguments.mountPoint)
    let lock = MountLock(for: mountPoint)
    try mountPoint.prepare()
    var covered = try Failure.naming(mountPoint.path.shown) { () throws(Errno) in
      try CoveredMountPoint(path: mountPoint.path)
    }
    let (stack, contents) = try openLayers(covered)
    let options = try volumeOptions(mountPoint, contents)
    // Paths such as /dev/fd/9 are resolved now.
    inherited.close()
    if arguments.isDryRun { return }
    let volume: Volume
    do throws(Errno) { volume = try Volume(stack: stack, options: options) } catch {
      throw .failed(
        "cannot create an inotify instance: \(error); raise the sysctl fs.inotify.max_user_instances, "
          + "or use '-o cache=1'")
    }
    try serve(volume, at: mountPoint, source: stack.layers[stack.layers.count - 1].path) { session in
      covered?.setDevice(session.device)
      // A needless descriptor of the directory beneath would keep automounts from expiring.
      covered = nil
      lock?.release()
    }
  }

  private func remount() throws(Failure) {
    let remount = try Remount(arguments)
    if !arguments.isDryRun { try remount.run() }
  }

  private func volumeOptions(_ mountPoint: MountPoint, _ contents: ContentCache?) throws(Failure)
    -> VolumeOptions
  {
    let given = arguments.options
    var options = VolumeOptions()
    options.contents = contents
    options.servesExtendedAttributes = given.servesExtendedAttributes
    options.descriptorBudget = DescriptorLimit.raise()
    options.control = given.control
    options.resources = given.resources
    options.resources.mountPoint = mountPoint.path
    options.resources.lookup.userLanguages = Language.ofUser { getenv($0).map { String(cString: $0) } }
    options.control.routes = RouteTable(builtInSchemes: ["bundlefs", given.resources.scheme])
    for path in given.routes { try RoutesFile(path).load(into: &options.control.routes) }
    options.cache = given.cache
    options.passthrough = given.passthrough
    options.maxRead = given.maxRead
    options.layerTimeout = given.layerTimeout
    options.skipsOverdueLayers = given.skipsOverdueLayers
    options.announce = given.announceMode
    options.shown = given.shown.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    options.shown.append(("fsname", (given.fsname ?? MountOptions.resolved(arguments.main)).shown))
    return options
  }

  private func openLayers(_ covered: CoveredMountPoint?) throws(Failure) -> (LayerStack, ContentCache?) {
    let contents = ContentCache(
      budget: arguments.options.cacheSize ?? MemoryLimit.share(atMost: ContentCache.defaultBudget),
      passwords: try arguments.options.archivePasswordFile.map(PasswordFile.init)?.passwords() ?? [])
    var layers: [Layer] = []
    for path in arguments.options.substitutions {
      layers.append(try open(path, as: "substitution", index: layers.count, covered, contents))
    }
    layers.append(try open(arguments.main, as: "MAIN", index: layers.count, covered, contents))
    let hasArchive = layers.contains { $0.archive != nil }
    return (LayerStack(layers: layers), hasArchive ? contents : nil)
  }

  private func open(
    _ path: [UInt8], as role: String, index: Int, _ covered: CoveredMountPoint?, _ contents: ContentCache
  ) throws(Failure) -> Layer {
    if let archive = ArchivePath(path) {
      do throws(ArchiveError) {
        return .archive(try archive.open(index: index, arguments.options.archiveEncoding, contents))
      } catch {
        throw .failed("\(role) \(path.shown): \(error.message)")
      }
    }
    do throws(Errno) {
      return .directory(try DirectoryLayer(path: try realPath(path), index: index, covered: covered))
    } catch {
      let reason =
        switch error {
        case .noSuchFileOrDirectory: "no such directory"
        case .notDirectory: "neither a directory nor a zip archive"
        case .socketNotConnected: "the mount there is dead; remove it with 'fusermount3 -u \(path.shown)'"
        default: "\(error)"
        }
      throw .failed("\(role) \(path.shown): \(reason)")
    }
  }

  private func serve(
    _ volume: Volume, at mountPoint: MountPoint, source: [UInt8], didMount: (Session) -> Void
  ) throws(Failure) {
    MemoryArenas.share()
    try checkDevice()
    let isDebug = arguments.isDebug || arguments.options.isDebug
    var options = arguments.options.passed
    options.append(Array("fsname=".utf8) + (arguments.options.fsname ?? source))
    if let maxRead = arguments.options.maxRead { options.append(Array("max_read=\(maxRead)".utf8)) }
    options += ["subtype=bundlefs", "default_permissions"].map { Array($0.utf8) }
    let cannotMount = "cannot mount at \(mountPoint.path.shown): "
    // From here on a signal must not leave a mount behind.
    Session.holdSignals()
    do throws(MountError) {
      let session = try Session(fileSystem: volume, options: options, debug: isDebug)
      try session.mount(at: mountPoint.path, debug: isDebug)
      if session.coversItsOwnKind {
        session.unmount()
        throw MountError(message: "busy: another bundlefs was mounted there just now")
      }
      didMount(session)
      try session.negotiate()
      if let reason = volume.beginPassthrough(session) {
        Terminal.printError("mounted without passthrough: \(reason)")
      }
      if arguments.isForeground || isDebug { return try serve(volume, session) {} }
      let process = try background(session)
      do throws(MountError) { try serve(volume, session, onReady: process.isReady) } catch {
        process.fail(cannotMount + error.message)
        exit(1)
      }
    } catch {
      throw .failed(cannotMount + error.message)
    }
  }

  private func serve(
    _ volume: Volume, _ session: Session, onReady: @escaping () -> Void
  ) throws(MountError) {
    var events = SessionEvents(
      willStart: { () throws(Errno) in try volume.start(session, requests: session.requests) },
      willStop: volume.stop)
    events.didStart = onReady
    events.hangup = volume.invalidateAll
    events.report = { Terminal.printError($0) }
    try session.serve(
      workers: max(2, processorCount), lowLatency: arguments.options.lowLatency, events)
  }

  /// Continues in a background process, and ends this one when that is ready.
  private func background(_ session: Session) throws(MountError) -> BackgroundProcess {
    do throws(Errno) {
      return try BackgroundProcess.start { outcome in
        switch outcome {
        case .ready: _exit(0)
        case .failed(let message): Terminal.printError(message)
        case .ended: Terminal.printError("the background process ended before the mount was usable")
        }
        // A process without a descriptor or process left could not run fusermount3.
        session.unmount()
        _exit(1)
      }
    } catch {
      session.unmount()
      throw MountError(message: "cannot start a background process: \(error)")
    }
  }

  private func checkDevice() throws(Failure) {
    guard access("/dev/fuse", F_OK) == 0 else {
      throw .failed(
        "/dev/fuse is missing; load the kernel module with 'modprobe fuse' (in a container, pass the device in)"
      )
    }
    guard access("/dev/fuse", R_OK | W_OK) == 0 else {
      throw .failed("/dev/fuse: \(Errno.current); ask the administrator for access, or run as root")
    }
  }
}
