/// Barriers: how a command is answered only when every change that was finished before is visible through the mount.
///
/// A barrier passes, in this order,
/// 1. in a successor, the comparison of the kernel's caches with the layers (`InheritedWalk`);
/// 2. the invalidations that are queued now (`InvalidationQueue`);
/// 3. the events that the watcher thread has yet to read, and what is not covered by watches (`LayerWatcher.run`);
/// 4. the checks of the layers' roots (`RootCheckQueue`), and the jobs of all layers (`LayerBarriers`);
/// 5. the invalidations that these have queued.
extension ControlCommandRunner {
  /// Calls a function when every change finished by now is visible through the mount; in a successor after the comparison
  /// with the kernel's caches, without which everything would be invalidated.
  /// - Returns: false if the mount ends, so that there is nothing left to wait for.
  func barrier(_ reached: @escaping @Sendable () -> Void) -> Bool {
    if queue.isClosed { return false }
    isCompared.whenOpen { self.passBarrier(reached) }
    return true
  }

  private func passBarrier(_ reached: @escaping @Sendable () -> Void) {
    if watcher == nil { queue.add(Invalidation.ofUncovered(in: store)) }
    let isQueued = queue.addBarrier { [watcher] in
      if watcher?.barrier(reached) != true { reached() }
    }
    if !isQueued { reached() }
  }

  /// To be called when the mount ends: there is nothing left to wait for.
  func endBarriers() {
    isCompared.open()
    layersAreVisible.open()
  }
}
