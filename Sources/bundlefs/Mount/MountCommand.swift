import Glibc
import Holder
import Layers
import Posix
import Volume

/// `bundlefs MAIN MOUNTPOINT`.
struct MountCommand {
  private var arguments: MountArguments
  /// The memory of the program that this one replaces; nil if it mounts.
  private var resumed: CInt?

  init(_ arguments: [[UInt8]]) throws(Failure) { self.arguments = try MountArguments(arguments) }

  /// `bundlefs --resume MEMORY …`, which takes the place of another program.
  init(resuming arguments: [[UInt8]]) throws(Failure) {
    guard let memory = arguments.first.flatMap({ CInt($0.shown) }) else {
      throw .usage("'--resume' needs a number")
    }
    let isPrivate = arguments.dropFirst().first?.elementsEqual("--private".utf8) == true
    self.arguments = try MountArguments([[]] + arguments.dropFirst(isPrivate ? 2 : 1))
    self.arguments.isPrivate = isPrivate
    resumed = memory
  }

  /// The daemon of a private mount, which another process makes.
  init(private arguments: MountArguments) { self.arguments = arguments }

  /// Serves a private mount in a background process.
  func serve(_ process: BackgroundProcess, closing inherited: InheritedDescriptors) -> Never {
    do throws(Failure) {
      let plan = try MountPlan(arguments, at: MountPoint(path: arguments.mountPoint))
      // Relative paths, and such as /dev/fd/9, are resolved now.
      inherited.close()
      _ = chdir("/")
      try serve(plan, process, nil)
    } catch {
      end(process, error, keepsMount: false)
    }
    exit(0)
  }

  /// Returns when the mount ends. Without `-f` it forks, and the parent exits once the mount is usable.
  func run() throws(Failure) {
    if arguments.wantsHelp { return Terminal.print(Help.text) }
    if arguments.wantsVersion { return Terminal.print(VersionReport.text) }
    if let namespace = arguments.namespace { try MountNamespace.enter(namespace) }
    if arguments.options.isRemount { return try remount() }
    if let resumed { return try resume(resumed) }
    let inherited = InheritedDescriptors()
    let mountPoint = try MountPoint(arguments.mountPoint)
    let lock = MountLock(for: mountPoint)
    try mountPoint.prepare()
    try OperandOrder.check(arguments, at: mountPoint)
    let plan = try MountPlan(arguments, at: mountPoint)
    if arguments.isDryRun {
      let (_, upper, _) = try LayerOpener(plan, covered: nil).open()
      upper?.close()
      return
    }
    // Paths such as /dev/fd/9 are resolved now.
    inherited.close()
    let process = plan.isForeground ? nil : try background(mountPoint)
    do throws(Failure) { try serve(plan, process, lock) } catch {
      guard let process else { throw error }
      end(process, error, keepsMount: false)
    }
  }

  private func remount() throws(Failure) {
    let remount = try Remount(arguments)
    if !arguments.isDryRun { try remount.run() }
  }

  /// Continues in a background process, and ends this one when that is ready.
  private func background(_ mountPoint: MountPoint) throws(Failure) -> BackgroundProcess {
    do throws(Errno) {
      return try BackgroundProcess.start { outcome in
        switch outcome {
        case .ready: _exit(0)
        case .failed(let message): Terminal.printError(message)
        case .ended: Terminal.printError("the background process ended before the mount was usable")
        }
        // A process without a descriptor or process left could not run fusermount3.
        if mountPoint.isStale { try? mountPoint.unmount(isLazy: true) }
        _exit(1)
      }
    } catch { throw .failed("cannot start a background process: \(error)") }
  }

  /// - Parameter lock: released once it is mounted.
  private func serve(_ plan: MountPlan, _ process: BackgroundProcess?, _ lock: MountLock?) throws(Failure) {
    let log = try DaemonLog(arguments.options.log, isBackground: process != nil)
    var obstacle: String?
    if arguments.options.survives, let memory = survivalMemory(&obstacle) {
      return try hold(memory, plan, process, lock, log)
    }
    if let obstacle { Terminal.printError("the mount will end with its process: \(obstacle)") }
    ThisProcess.reserveFiles()
    let worker = MountWorker(
      plan: plan, process: process, survival: nil, survivalObstacle: obstacle, log: log)
    try worker.mountAndServe { lock?.release() }
  }

  /// - Parameter obstacle: set if the mount cannot outlive its process: a call that the system refuses.
  private func survivalMemory(_ obstacle: inout String?) -> SurvivalMemory? {
    obstacle = Holder.obstacle
    if obstacle != nil { return nil }
    do throws(Errno) { return try SurvivalMemory() } catch {
      obstacle = "the memory for its successors, by memfd_create(2): \(error)"
      return nil
    }
  }

  private func resume(_ memory: CInt) throws(Failure) {
    var arguments = arguments
    arguments.options.hasResolvedPaths = true
    let plan = try MountPlan(arguments, at: MountPoint(path: arguments.mountPoint))
    let present = try Failure.naming("the memory of the former program") { () throws(Errno) in
      try SurvivalMemory(resuming: memory)
    }
    try hold(present, plan, nil, nil, nil)
  }

  /// What stays until the end of the process.
  private static let kept = Locked<[any AnyObject & Sendable]>([])

  /// Returns only if no worker can be started.
  private func hold(
    _ memory: SurvivalMemory, _ plan: MountPlan, _ process: BackgroundProcess?, _ lock: MountLock?,
    _ log: DaemonLog?
  ) throws(Failure) {
    // The kernel looks for a worker's lock in it at the very end of the process.
    Self.kept.withLock { $0.append(memory.memory) }
    let worker = MountWorker(plan: plan, process: process, survival: memory, log: log)
    let replacement = [ProgramUpgrade.path] + plan.arguments(forSuccessorWith: memory.memory.file.rawValue)
    let holder = Holder(
      memory.memory, replacement: replacement, isReplacement: resumed != nil,
      watchdog: arguments.options.watchdog.map { Watchdog(milliseconds: $0) })
    do throws(Errno) {
      try holder.run { role in
        do throws(Failure) { try work(role, worker, memory, lock) } catch {
          end(process, error, keepsMount: role == .successor)
        }
        exit(0)
      }
    } catch {
      throw .failed("cannot start a worker process: \(error); '-o survive=off' needs none")
    }
  }

  /// In a worker.
  private func work(
    _ role: Holder.Role, _ worker: MountWorker, _ memory: SurvivalMemory, _ lock: MountLock?
  ) throws(Failure) {
    // After an error the next successor may succeed.
    switch role {
    case .first:
      defer { memory.state.phase = .ended }
      try worker.mountAndServe { lock?.release() }
    case .successor:
      // Its descriptor is closed, or another file's by now.
      if let lock { Self.kept.withLock { $0.append(lock) } }
      try worker.resume(memory)
      memory.state.phase = .ended
    case .unmounter:
      defer { memory.state.phase = .ended }
      // The holder's end closes the connection.
      if worker.plan.isPrivate { return }
      // Dead workers that cannot end yet would keep the connection.
      try worker.plan.mountPoint.abort()
    }
  }

  /// Ends a process with an error. A successor's is only printed: the first worker has reported that it is ready, or the
  /// next one may succeed.
  private func end(_ process: BackgroundProcess?, _ error: Failure, keepsMount: Bool) -> Never {
    if let process, !keepsMount { process.fail(error.message) } else { Terminal.printError(error.message) }
    exit(error.status)
  }
}
