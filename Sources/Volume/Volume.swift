import Bundles
import Fuse
import Glibc
import Layers
import Posix
import Routing

/// The mounted file system: the merged view of a stack of layers.
///
/// This type builds the parts, starts and stops them (`Volume+Services.swift`), and passes each request on to the part that
/// replies to it (`Volume+Requests.swift`). Requests are stateless: there are no file handles.
public final class Volume: Sendable {
  /// The version that `bundlefs -V` and `user.bundlefs.version` report.
  public static let version = "0.1.0"

  let options: VolumeOptions
  let store: NodeStore
  let queue: InvalidationQueue
  let counters = InvalidationCounters()
  /// nil without a coherent cache, for which it watches what is known of the layers.
  let watcher: LayerWatcher?
  /// Follows the layers' roots: the same watcher, or with `cache=none` and `cache=SECONDS` one that watches their paths and
  /// archives only. nil where that one cannot have an inotify instance: then the roots stay as they were opened.
  let rootWatcher: LayerWatcher?
  let announcer: Announcer?
  let control: ControlFile
  let commands: ControlCommandRunner
  let listingPrefetcher: ListingPrefetcher
  let filePrefetcher: FilePrefetcher
  /// nil if all files are those of present layers.
  let retiredLayers: RetiredLayerMonitor?

  let entries: EntryOperations
  let attributes: AttributeOperations
  let directories: DirectoryOperations
  let files: FileOperations
  let extendedAttributes: ExtendedAttributeOperations
  let flags: FlagOperations
  let writes: WriteOperations
  /// nil for a read-only mount.
  let writer: Writer?
  let statusRequests: StatusRequests

  private let requests = Locked<RequestCounters?>(nil)
  let watchdog: LayerWatchdog
  /// The kernel's side of the mount, between start and stop.
  let kernel = Locked<(any KernelNotifier)?>(nil)
  let invalidator = Locked<FailoverLoop<Invalidator.Step>?>(nil)

  /// A file system of these layers.
  /// - Throws: EMFILE beyond `fs.inotify.max_user_instances` or the limit of descriptors; what statfs(2) of a
  ///   layer's root answers.
  public init(stack: LayerStack, options: VolumeOptions) throws(Errno) {
    self.options = options
    let reserved = ReservedNames(
      control: options.control.name, listsControl: options.control.isListed && !options.control.name.isEmpty,
      resources: options.resources.directoryName, foldsNames: stack.foldsNames)
    queue = try InvalidationQueue()
    watchdog = try LayerWatchdog { stack[$0].gate.isolate() }
    let isCoherent = options.cache == .coherent
    let own = isCoherent && options.upper?.distinguishesChanges == true ? OwnChanges(queue) : nil
    let mountPoint = options.isElsewhere ? [] : options.resources.mountPoint
    watcher = isCoherent ? try LayerWatcher(stack.layers, mountPoint: mountPoint, queue, own: own) : nil
    rootWatcher =
      watcher ?? (try? LayerWatcher(stack.layers, mountPoint: mountPoint, queue, isCoherent: false))
    store = try NodeStore(
      stack, watcher: watcher, cache: options.cache, budget: options.descriptorBudget,
      isWritable: options.upper != nil, isShared: options.isShared,
      knowsKernelSizes: !options.isElsewhere, lookupObserver: own,
      memory: options.memory.map { NodeMemory($0, layers: stack.ids) }, visibleTimes: options.visibleTimes,
      shownOwners: options.shownOwners)
    announcer = watcher != nil && options.announce == .on ? try Announcer(store, reserved) : nil
    let resolver = ResourceResolver(stack, options.resources, reserved, options.shownOwners)
    let listings = ListingCache()
    let resources = ResourceDirectory(
      resolver, store, listings, reserved, memory: options.memory)
    control = ControlFile(options.control, memory: options.memory)
    commands = ControlCommandRunner(
      control: control, resolver: resolver, store: store, queue: queue, watcher: rootWatcher,
      contents: options.contents, layerSwitch: options.layerSwitch)
    listingPrefetcher = ListingPrefetcher(store: store)
    filePrefetcher = FilePrefetcher(store: store, kernel: kernel)
    retiredLayers =
      stack.retiredIndexes.isEmpty
      ? nil : try RetiredLayerMonitor(store, release: options.layerSwitch?.release)

    let (store, queue, kernel) = (store, queue, kernel)
    writer = options.upper.map {
      Writer(
        $0, store: store, queue: queue, kernel: kernel, own: own,
        intents: options.memory.map { IntentLog($0) }, reserved: reserved,
        budget: options.descriptorBudget, renameCopy: options.renameCopy, memory: options.memory)
    }
    writes = WriteOperations(
      store: store, control: control, writer: writer, expected: announcer?.expected)
    entries = EntryOperations(
      store: store, control: control, resources: resources, writes: writes, reserved: reserved)
    attributes = AttributeOperations(
      store: store, control: control, commands: commands, resources: resources, pages: writer?.pages)
    directories = DirectoryOperations(
      store: store, control: control, reserved: reserved, listings: listings,
      prefetcher: listingPrefetcher, resources: resources, pages: writer?.pages)
    let files = FileOperations(
      store: store, control: control, prefetcher: filePrefetcher, kernel: kernel, writer: writer,
      expected: announcer?.expected)
    self.files = files
    extendedAttributes = ExtendedAttributeOperations(
      store: store, types: resolver.types, writer: writer, mode: options.extendedAttributes)
    flags = FlagOperations(store: store, writer: writer)
    let reporter = StatusReporter(
      options: options, store: store, control: control, resolver: resolver, watcher: watcher,
      rootWatcher: rootWatcher, announcer: announcer, filePrefetcher: filePrefetcher,
      listingPrefetcher: listingPrefetcher,
      counters: counters, requests: requests, passthrough: { files.passthroughStatus })
    statusRequests = StatusRequests(
      reporter: reporter, control: control, store: store, reserved: reserved, commands: commands)
  }

  // MARK: - Start and stop

  /// Starts the threads. No request may be answered before.
  /// - Parameter haveLayersChanged: whether a predecessor has handed over to change the layers: a program waits until
  ///   the kernel has nothing of the former ones.
  /// - Throws: EAGAIN when a thread cannot be started.
  public func start(
    _ kernel: any KernelNotifier, requests: RequestCounters, haveLayersChanged: Bool = false
  ) throws(Errno) {
    self.requests.withLock { $0 = requests }
    configureGates()
    if haveLayersChanged {
      queue.add([Invalidation(subject: .formerLayers)])
      _ = queue.addBarrier { [commands] in commands.layersAreVisible.open() }
    }
    for service in services { try service.start(kernel) }
    // A predecessor may have held some.
    commands.watchHeldLines()
  }

  /// Stops the threads after they have done what is queued. Requests must still be answered meanwhile.
  public func stop() {
    for service in services.reversed() { service.stop() }
  }

  /// Stores the tables of strings that were saved last. To be called after `stop`, when the file system is unmounted.
  public func settleTables() { writer?.tables?.settleAll() }

  // MARK: - Layers that do not answer

  /// Milliseconds for which requests wait for remote layers and those on FUSE.
  private static let remoteTimeout: CInt = 30_000

  /// Milliseconds for which requests wait while the file system is about to be unmounted.
  private static let unmountTimeout: CInt = 300

  private func configureGates() {
    for (_, layer) in store.stack.all {
      let timeout = options.layerTimeout ?? (layer.gate.isRemote ? Self.remoteTimeout : nil)
      layer.gate.configure(timeout: timeout) { [queue] in
        // What was answered without the layer.
        queue.add([Invalidation(subject: .subtree(.root))])
      }
    }
  }

  public func policy(forLayer layer: Int) -> LayerPolicy {
    let gate = store.stack[layer].gate
    let timeout =
      control.isDisconnecting ? min(gate.timeout ?? .max, Self.unmountTimeout) : gate.timeout
    return LayerPolicy(
      timeout: timeout, skips: options.skipsOverdueLayers, isUnresponsive: gate.unresponsiveSince != nil)
  }

  public func layerIsSlow(_ layer: Int) { store.stack[layer].gate.isolate() }

  /// Compares the kernel's caches, which a predecessor has filled, with the layers, which may have changed meanwhile. To be called
  /// after `start`, before any request is processed.
  public func recover() {
    rootWatcher?.checkLayers(store)
    writer?.recover()
    let (isCompared, layersAreVisible) = (commands.isCompared, commands.layersAreVisible)
    isCompared.close()
    queue.add([Invalidation(subject: .inherited)])
    isCompared.whenOpen { [retiredLayers] in
      layersAreVisible.open()
      retiredLayers?.begin()
    }
  }

  /// The inotify instance whose unread events tell a successor what has changed since; nil if they do not tell all. To be
  /// called after `stop`.
  public var eventsForSuccessor: CInt? {
    guard let watcher, store.isWhollyCovered, !store.stack.all.contains(where: { $0.layer.gate.isIsolated })
    else { return nil }
    return watcher.watches.inotify.rawValue
  }

  /// Calls a function when the kernel has nothing of the layers that a predecessor had.
  public func whenLayersAreVisible(_ action: @escaping @Sendable () -> Void) {
    commands.layersAreVisible.whenOpen(action)
  }

  /// The open files, by the kernel's numbers, that programs polled in a predecessor.
  public var polledFiles: [UInt64] { control.polledFiles }

  /// The size in bytes of the memory that `VolumeOptions.memory` needs.
  public static let memorySize = NodeMemory.size

  /// The descriptors in the memory that are a predecessor's open files.
  public static func openFiles(in memory: SharedMemory) -> [CInt] { NodeMemory(memory).openFiles }

  /// Drops everything that the kernel and the daemon have cached.
  public func invalidateAll() {
    // The daemon's caches first, since the kernel's are filled from them.
    options.contents?.evictAll()
    queue.add([Invalidation(subject: .subtree(.root))])
  }

  // MARK: - Connection

  /// What is negotiated with the kernel at INIT.
  public var settings: ConnectionSettings {
    var settings = ConnectionSettings()
    settings.posixACLs = options.extendedAttributes != .off
    settings.appliesUmask = options.upper != nil
    settings.takesWrites = options.upper != nil
    settings.commandFile = ControlFile.node
    settings.cachesSymbolicLinks = options.cache != .none
    settings.passthroughDepth = passthroughDepth
    settings.maxRead = options.maxRead
    return settings
  }

  /// Turns passthrough on if `-o passthrough` asks for it and the kernel allows it; to be called after INIT, before
  /// any other request.
  /// - Returns: why it is impossible; nil if it is possible or was not asked for.
  public func beginPassthrough(_ kernel: any BackingFiles) -> String? {
    guard let smallest = options.passthrough else { return nil }
    let obstacle = passthroughDepth == 0 ? "no layer is a folder" : kernel.passthroughObstacle
    files.setPassthrough(
      obstacle.map { .impossible($0) }
        ?? .possible(
          Passthrough(kernel, smallest: smallest, upper: options.upper, memory: options.memory)))
    return obstacle
  }

  /// How many file systems lie below the files that may be passed through, plus 1; 0 without any. An overlayfs, as
  /// containers have it, counts for one more; then no overlayfs can be mounted over this mount.
  private var passthroughDepth: Int {
    if options.passthrough == nil { return 0 }
    let folders = store.stack.layers.compactMap(\.folder)
    if folders.isEmpty { return 0 }
    return folders.contains(where: \.isStacked) ? 2 : 1
  }
}
