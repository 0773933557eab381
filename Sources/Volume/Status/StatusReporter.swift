import Bundles
import Fuse
import Layers
import Posix
import Routing

/// Collects what `bundlefs status` shows.
struct StatusReporter: Sendable {
  let options: VolumeOptions
  let store: NodeStore
  let control: ControlFile
  let resolver: ResourceResolver
  let watcher: LayerWatcher?
  /// What knows the faults of the layers' roots.
  let rootWatcher: LayerWatcher?
  let announcer: Announcer?
  let filePrefetcher: FilePrefetcher
  let listingPrefetcher: ListingPrefetcher
  let counters: InvalidationCounters
  /// nil before the start.
  let requests: Locked<RequestCounters?>
  let passthrough: @Sendable () -> PassthroughStatus?

  /// - Parameter showsNames: whether to name entries of the mount, which the caller might not be able to list.
  func status(showsNames: Bool) -> Status {
    let requests = requests.withLock { $0 }
    let (routes, results) = control.counts
    // Nothing else is asked for with the table locked: setting a watch may take long.
    let (nodes, descriptors, uncached) = store.table.withLock { table in
      (table.count, table.descriptors.count, uncachedDirectories(table, showsNames))
    }
    return Status(
      log: .present, options: options.shown, reusableOptions: showsNames ? options.reusable : nil,
      cache: options.cache.description,
      control: control.name.text, routes: routes, results: results,
      layers: store.stack.layers.indices.map { layerStatus($0, showsNames) },
      bundle: BundleStatus(resolver),
      watches: watcher?.watches.count ?? 0, nodes: nodes, descriptors: descriptors,
      requests: RequestKind.allCases.map { ($0.name, requests?[$0] ?? 0) },
      latencies: LatencyStatus(requests?.latencies),
      invalidations: [
        ("entries", counters.entries.count), ("attributes", counters.attributes.count),
        ("contents", counters.contents.count),
      ],
      readAhead: filePrefetcher.stored.count, listedAhead: listingPrefetcher.hits.count,
      announcements: AnnouncementStatus(mode: options.announce, figures: announcer?.figures),
      overflows: watcher?.overflows ?? 0, uncached: uncached,
      innerMounts: showsNames ? innerMounts : [],
      contents: options.contents?.statistics,
      tables: store.stack.tables.map { TableStatus($0, store.stack, showsNames: showsNames) },
      passthrough: passthrough(),
      survival: options.survival?(), survivalObstacle: options.survivalObstacle)
  }

  /// In another mount namespace there may be others.
  private var innerMounts: [String] {
    if store.spellings == nil || options.isElsewhere { return [] }
    let mountPoint = options.resources.mountPoint
    return store.mountsOfOneSpelling(InnerMounts.paths(in: mountPoint)).map {
      (mountPoint + [UInt8(ascii: "/")] + $0.joinedPath).text
    }
  }

  private func layerStatus(_ index: Int, _ showsNames: Bool) -> Status.Layer {
    let layer = store.stack.layers[index]
    return Status.Layer(
      path: layer.path.text, encodedPath: PercentCoding.encoded(path: layer.laidPath.name),
      place: layer.laidPath.place.isEmpty ? nil : layer.laidPath.folder.text,
      isWritable: index == 0 && store.isWritable, isAbsent: layer.isAbsent, isWatched: watcher != nil,
      reason: store.unwatchableLayers[index] ?? rootWatcher?.fault(of: index)
        ?? (layer.isAbsent ? LayerRoot.absent : nil),
      unresponsive: layer.gate.unresponsiveSince.map {
        Int(TimeSpec.monotonic.milliseconds(since: $0) / 1000)
      },
      archive: layer.archive.map { ArchiveStatus($0, showsNames: showsNames) },
      collisions: layer.gate.collisions.count,
      overlayReferences: layer.gate.overlayReferences.summary?.count ?? 0,
      overlayReference: showsNames ? layer.gate.overlayReferences.summary?.example.text : nil,
      hint: showsNames ? hint(for: layer) : nil)
  }

  /// Many archives have all files below one folder. If MAIN has no such folder, nothing is overridden.
  private func hint(for layer: Layer) -> String? {
    guard let wrapped = layer.archive?.wrappedPath, let main = store.stack.layers.last else { return nil }
    let place = layer.laidPath.place
    guard case .nothing = try? main.entry(at: place + [wrapped.folder]) else { return nil }
    return "use \(LaidPath(wrapped.path, atFolder: place).shown.text)"
  }

  /// The directories that cause short timeouts; the first hundred.
  private func uncachedDirectories(_ table: NodeTable, _ showsNames: Bool) -> [Status.UncachedDirectory] {
    var found: [Status.UncachedDirectory] = []
    for slot in 1..<UInt32(table.nodes.count) where found.count < 100 {
      guard let uncached = table[slot].directory?.uncachedReason else { continue }
      found.append(
        Status.UncachedDirectory(
          layer: store.stack[uncached.layer].path.text,
          path: showsNames ? table.path(of: slot).map(\.text).joined(separator: "/") : nil,
          reason: uncached.reason))
    }
    return found
  }

  /// The resource folder and the localizations that are searched, each followed by NUL, for
  /// `StatusProtocol.Form.resources`; empty if the bundle cannot be read.
  var resourceSearchPath: [UInt8] {
    guard let layout = try? resolver.lookup.layout(),
      let localizations = try? resolver.lookup.searchedLocalizations()
    else { return [] }
    return ([layout.resourceFolder.joinedPath] + localizations).flatMap { $0 + [0] }
  }
}
