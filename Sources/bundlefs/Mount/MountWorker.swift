import Fuse
import Glibc
import Holder
import Layers
import Posix
import Routing
import Volume

/// The session that an upgrade hands over. It refers to the volume, which refers to this.
private struct WeakSession {
  weak var session: Session?
}

/// The process that answers the kernel's requests.
struct MountWorker {
  let plan: MountPlan
  /// nil in the foreground.
  let process: BackgroundProcess?
  /// nil if no successor is to come.
  let survival: SurvivalMemory?
  /// Why none can come although one is wanted.
  var survivalObstacle: String? = nil
  /// nil if a predecessor has begun it.
  let log: DaemonLog?

  private var service: ServiceNotifier? { ServiceNotifier(plan, isHeld: survival != nil) }

  /// Mounts, and returns when the mount ends.
  /// - Parameter didMount: called once it is mounted.
  func mountAndServe(didMount: () -> Void) throws(Failure) {
    // Until then they end the process at once.
    Session.releaseSignals()
    try DescriptorLimit.check()
    // All checks come before the mount, so that a failure leaves nothing behind.
    var covered = try coveredMountPoint()
    // Nothing of it stays, since it holds the directory beneath.
    let (stack, upper, contents) = try LayerOpener(
      plan, covered: covered, archives: survival?.archives
    ).open()
    // Without a mount nothing needs its work folder.
    var isMounted = false
    defer { if !isMounted { upper?.close() } }
    let sessions = Locked(WeakSession())
    let recorder = survival.map { StackRecorder(plan, stack, $0) }
    let volume = try makeVolume(stack, contents, upper, sessions, recorder)
    try checkDevice()
    // From here on a signal must not leave a mount behind.
    Session.holdSignals()
    do throws(MountError) {
      let session = try Session(fileSystem: volume, options: plan.sessionOptions, debug: plan.isDebug)
      let before = Set(OpenDescriptors.all())
      sessions.withLock { $0.session = session }
      try mount(session)
      covered?.setDevice(session.device)
      didMount()
      try session.negotiate()
      prepareSuccession(session, stack, covered, before, upper?.lock)
      // A needless descriptor of the directory beneath would keep automounts from expiring.
      covered = nil
      if process?.isAbandoned == true {
        session.unmount()
        throw MountError(message: "interrupted")
      }
      isMounted = true
      try serve(volume, upper, session, recorder, isSuccessor: false)
    } catch {
      throw .failed("cannot mount at \(plan.mountPoint.path.shown): \(error.message)")
    }
  }

  private func mount(_ session: Session) throws(MountError) {
    let path = plan.mountPoint.path
    if let process, plan.isPrivate {
      session.isElsewhere = true
      let mount: ReceivedMount
      do throws(Errno) { mount = try process.receiveMount() } catch {
        throw MountError(message: "interrupted")
      }
      return try session.attach(mount, at: path)
    }
    try session.mount(at: path, debug: plan.isDebug)
    if session.coversItsOwnKind {
      session.unmount()
      throw MountError(message: "busy: another bundlefs was mounted there just now")
    }
  }

  /// nil if nothing is mounted where this process is.
  private func coveredMountPoint() throws(Failure) -> CoveredMountPoint? {
    if plan.isPrivate { return nil }
    return try Failure.naming(plan.mountPoint.path.shown) { () throws(Errno) in
      try CoveredMountPoint(path: plan.mountPoint.path)
    }
  }

  /// A session that would close the connection at its end, which the next successor needs after a failure.
  private static let kept = Locked<Session?>(nil)

  /// Resumes a mount whose worker has died.
  func resume(_ survival: SurvivalMemory) throws(Failure) {
    if survival.state.wasReady != 0 { process?.disown() }
    Session.holdSignals()
    let staleFiles = survival.state.wasReady != 0 ? survival.staleFiles : []
    survival.closeFilesOnExec()
    let covered = try coveredMountPoint(survival)
    guard let table = survival.layerTable else { throw .failed("the layers are unknown") }
    let (stack, upper, contents) = try LayerOpener(
      plan, covered: covered, archives: survival.archives
    ).open(table, survival)
    let sessions = Locked(WeakSession())
    let recorder = StackRecorder(plan, stack, survival)
    let volume = try makeVolume(
      stack, contents, upper, sessions, recorder, survival.takeUnreadEvents(), isSuccessor: true)
    do throws(MountError) {
      let session = try Session(fileSystem: volume, options: plan.sessionOptions, debug: plan.isDebug)
      sessions.withLock { $0.session = session }
      Self.kept.withLock { $0 = session }
      session.isElsewhere = plan.isPrivate
      session.users = survival.state.users - 1
      try session.resume(survival.state.device, at: plan.mountPoint.path, survival.initRequest)
      covered?.setDevice(session.device)
      try serve(volume, upper, session, recorder, isSuccessor: true) { Self.close(staleFiles) }
    } catch {
      throw .failed("cannot resume \(plan.mountPoint.path.shown): \(error.message)")
    }
  }

  private func coveredMountPoint(_ survival: SurvivalMemory) throws(Failure) -> CoveredMountPoint? {
    if survival.state.beneath < 0 { return nil }
    return try Failure.naming(plan.mountPoint.path.shown) { () throws(Errno) in
      try CoveredMountPoint(
        path: plan.mountPoint.path, beneath: try Descriptor.duplicate(of: survival.state.beneath))
    }
  }

  private func makeVolume(
    _ stack: LayerStack, _ contents: ContentCache?, _ upper: UpperLayer?, _ session: Locked<WeakSession>,
    _ recorder: StackRecorder?, _ unreadEvents: UnreadEvents? = nil, isSuccessor: Bool = false
  ) throws(Failure) -> Volume {
    var options = plan.volumeOptions
    options.shown = options.shown.map {
      $0.name == "substitution" ? ($0.name, shownSubstitutions(stack)) : $0
    }
    options.contents = contents
    options.upper = upper
    options.survivalObstacle = survivalObstacle
    options.visibleTimes = VisibleTimesPlace(
      plan: plan, upper: upper, survival: survival, isSuccessor: isSuccessor
    ).open()
    if let survival {
      options.memory = survival.memory
      options.unreadEvents = unreadEvents
      options.survival = { survival.status }
      let upgrade = ProgramUpgrade(survival, plan)
      options.upgrade = Upgrade(refusal: upgrade.refusal) { [service] in
        service?.isReloading()
        session.withLock { $0.session }?.handOver()
      }
    }
    options.layerSwitch = recorder.map { recorder in
      LayerSwitch(
        make: { paths, request, used throws(RoutingError) in try recorder.make(paths, request, used) },
        wasMade: recorder.wasMade, reopen: { used throws(RoutingError) in try recorder.reopen(used) },
        release: recorder.release,
        handOver: { session.withLock { $0.session }?.handOver() })
    }
    do throws(Errno) { return try Volume(stack: stack, options: options) } catch {
      throw .failed(
        "cannot create an inotify instance: \(error); raise the sysctl fs.inotify.max_user_instances, "
          + "or use '-o cache=1'")
    }
  }

  /// The substitutions as the option has them, which may have changed since the mount.
  private func shownSubstitutions(_ stack: LayerStack) -> String {
    let added = plan.arguments.options.writable.added.count
    return stack.layers.dropFirst(added).dropLast().map(\.path.shown).joined(separator: ":")
  }

  /// - Parameters:
  ///   - before: the descriptors before the mount: libfuse keeps one open for `auto_unmount`.
  ///   - lock: that of the layer that takes the changes.
  private func prepareSuccession(
    _ session: Session, _ stack: LayerStack, _ covered: CoveredMountPoint?, _ before: Set<CInt>,
    _ lock: SharedDescriptor?
  ) {
    guard let survival, session.canBeResumed else { return }
    var opened = OpenDescriptors.all().filter { !before.contains($0) && $0 != session.descriptor }
    if let lock { opened.insert(lock.descriptor.rawValue, at: 0) }
    withUnsafeMutableBytes(of: &survival.state.others) { kept in
      for (place, file) in zip(kept.bindMemory(to: CInt.self).indices, opened) {
        kept.bindMemory(to: CInt.self)[place] = file
      }
    }
    // Without a descriptor left the mount works, but does not survive.
    try? survival.record(session, stack, covered)
  }

  private func serve(
    _ volume: Volume, _ upper: UpperLayer?, _ session: Session, _ recorder: StackRecorder?,
    isSuccessor: Bool,
    didStart: @escaping @Sendable () -> Void = {}
  ) throws(MountError) {
    MemoryArenas.share()
    if let reason = volume.beginPassthrough(session) {
      Terminal.printError("mounted without passthrough: \(reason)")
    }
    let haveLayersChanged = survival?.state.haveLayersChanged == 1
    var events = SessionEvents(
      willStart: { () throws(Errno) in
        try volume.start(session, requests: session.requests, haveLayersChanged: haveLayersChanged)
        if isSuccessor {
          volume.recover()
          survival?.waitForReaders()
          session.requestUnanswered()
          session.wakePollers(of: volume.polledFiles)
        }
        survival?.readLocks.reset()
        // From the first request on it records files that only its own successors have.
        survival?.state.completeTakeover()
      },
      willStop: volume.stop)
    events.didStart = {
      isReady()
      // The processors are busy until the program is answered that changes the layers.
      if haveLayersChanged { volume.whenLayersAreVisible(didStart) } else { didStart() }
    }
    events.hangup = volume.invalidateAll
    events.willAbandon = { survival?.state.phase = .ended }
    events.report = { Terminal.printError($0) }
    let end = try session.serve(
      workers: max(2, processorCount), readLocks: survival?.readLocks,
      lowLatency: plan.arguments.options.lowLatency, events)
    guard end != .unmounted, let survival else {
      service?.isStopping()
      volume.settleTables()
      upper?.close()
      return
    }
    if recorder?.hasSwitched == true {
      if end == .handedOver { survival.state.unreadEvents = (volume.eventsForSuccessor ?? -1) + 1 }
      survival.state.phase = .switched
    } else {
      survival.keepFilesAcrossExec()
      survival.state.phase = .replaced
    }
    // Without closing any file.
    _exit(0)
  }

  /// Closes files on a thread of its own: closing one of a layer that does not answer can block. It takes some
  /// milliseconds, so the first answers do not wait for it.
  private static func close(_ files: [CInt]) {
    try? Thread.startDetached(name: "stale files") { for file in files { Glibc.close(file) } }
  }

  private func isReady() {
    let wasReady = survival?.state.wasReady == 1
    survival?.state.wasReady = 1
    survival?.state.haveLayersChanged = 0
    survival?.state.phase = .ready
    service?.isReady(deaths: survival?.status.deaths ?? 0)
    service?.beginSignsOfLife()
    if !wasReady {
      log?.begin()
      process?.isReady()
    }
    // The first worker may have died right before it was ready.
    if let survival {
      reportDeath(survival)
      reportFailedUpgrade(survival)
    }
  }

  private func reportFailedUpgrade(_ survival: SurvivalMemory) {
    let failed = survival.state.failedUpgrades
    guard survival.state.reportedFailedUpgrades < failed else { return }
    survival.state.reportedFailedUpgrades = failed
    Terminal.printError(
      "\(plan.mountPoint.path.shown): not upgraded: the installed program did not take over; the former one continues"
    )
  }

  private func reportDeath(_ survival: SurvivalMemory) {
    let status = survival.status
    // A worker that follows an upgrade has none to report.
    guard let cause = status.cause, survival.state.reportedDeaths < status.deaths else { return }
    survival.state.reportedDeaths = UInt32(clamping: status.deaths)
    Terminal.printError(
      "\(plan.mountPoint.path.shown): worker processes that have died: \(status.deaths), the last one by \(cause)"
        + (status.hangs > 0 ? " (killed because they hung: \(status.hangs))" : "") + "; the mount continues")
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
