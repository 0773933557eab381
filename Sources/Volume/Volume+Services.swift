import Fuse
import Layers
import Posix

/// A part of a volume that works while the file system is mounted.
struct Service {
  /// - Throws: EAGAIN when a thread cannot be started.
  let start: (any KernelNotifier) throws(Errno) -> Void
  /// Ends the threads after they have done what is queued.
  let stop: () -> Void

  init(start: @escaping (any KernelNotifier) throws(Errno) -> Void, stop: @escaping () -> Void) {
    (self.start, self.stop) = (start, stop)
  }

  init(_ worker: SerialWorker, _ watchdog: LayerWatchdog) {
    self.init(start: { _ throws(Errno) in try worker.start(watchdog) }, stop: worker.stop)
  }
}

extension Volume {
  /// The services in the order in which they start; they stop in reverse. So each may use those above it: the watcher queues
  /// invalidations, the invalidator announces them, and whatever calls a layer is watched by the watchdog.
  var services: [Service] {
    kernelServices + layerServices
      + [
        Service(statusRequests.worker, watchdog),
        Service(
          start: { [listingPrefetcher, watchdog] _ throws(Errno) in
            try listingPrefetcher.worker.start(watchdog)
          },
          stop: listingPrefetcher.stop),
        Service(filePrefetcher.worker, watchdog),
      ] + controlServices
      + [
        Service(
          start: { [files, watchdog] _ throws(Errno) in try files.start(watchdog) }, stop: files.stop)
      ] + coherenceServices
  }

  private var kernelServices: [Service] {
    [
      // The session holds this volume, and these hold the session.
      Service(
        start: { [kernel] notifier throws(Errno) in kernel.withLock { $0 = notifier } },
        stop: { [kernel, files] in
          kernel.withLock { $0 = nil }
          files.endPassthrough()
        })
    ]
  }

  private var layerServices: [Service] {
    var services: [Service] = []
    if let writer {
      // It closes files that the watchdog would close.
      services.append(
        Service(
          start: { [watchdog] _ throws(Errno) in writer.descriptors.start(watchdog) },
          stop: writer.descriptors.stop))
    }
    services.append(
      Service(start: { [watchdog] _ throws(Errno) in try watchdog.start() }, stop: watchdog.stop))
    if let contents = options.contents {
      services.append(
        Service(
          start: { _ throws(Errno) in try contents.start(threads: max(2, processorCount)) },
          stop: contents.stop))
    }
    if let tables = writer?.tables {
      services.append(
        Service(start: { [watchdog] _ throws(Errno) in try tables.start(watchdog) }, stop: tables.stop))
    }
    if let pages = writer?.pages {
      services.append(
        Service(start: { [watchdog] _ throws(Errno) in try pages.start(watchdog) }, stop: pages.stop))
    }
    return services
  }

  private var controlServices: [Service] {
    let (notifier, heldLines) = (control.notifier, commands.heldLines)
    return [
      Service(
        start: { [watchdog] _ throws(Errno) in try notifier.start(watchdog) }, stop: notifier.stop),
      Service(commands.layerWorker, watchdog),
      Service(commands.worker, watchdog),
      Service(
        start: { [watchdog] _ throws(Errno) in try heldLines.start(watchdog) }, stop: heldLines.stop),
    ]
  }

  private var coherenceServices: [Service] {
    var services: [Service] = []
    if let retiredLayers { services.append(Service(start: retiredLayers.start, stop: retiredLayers.stop)) }
    if let announcer { services.append(Service(start: announcer.start, stop: announcer.stop)) }
    services.append(Service(start: startInvalidator, stop: stopInvalidator))
    if let watcher = rootWatcher {
      services.append(
        Service(
          start: { [weak commands, store, watchdog] _ throws(Errno) in
            watcher.whenFolderComes { [weak commands] in commands?.reopenLayers() }
            try watcher.start(store, watchdog)
          },
          stop: watcher.stop))
    }
    return services
  }

  private func startInvalidator(_ kernel: any KernelNotifier) throws(Errno) {
    let invalidator = Invalidator(
      store: store, queue: queue, kernel: kernel, counters: counters, observer: announcer,
      isCompared: commands.isCompared, unreadEvents: options.unreadEvents,
      whenStored: filePrefetcher.whenStored)
    let loop = invalidator.loop(watchdog)
    try loop.start()
    self.invalidator.withLock { $0 = loop }
  }

  private func stopInvalidator() {
    queue.end()
    commands.endBarriers()
    // Its loop holds the kernel's side, too.
    invalidator.withLock { $0.take() }?.join()
  }
}
