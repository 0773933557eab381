import Glibc
import Posix

/// `bundlefs run [-o OPTIONS] [--at DIR] MAIN -- COMMAND [ARGUMENT…]`.
///
/// The process becomes the command, so that its ID, its terminal, signals, open files and exit status need no
/// forwarding, except for Wine's (`WineCommand`). A daemon that it leaves behind, outside of the mount namespace, serves
/// the mount until the kernel destroys that with the last process of the namespace. So the daemon keeps no file
/// of the mount open, except for a moment (`Mounts.mountFurther`).
struct RunCommand {
  private let arguments: RunArguments
  private var wine: WineCommand { WineCommand(arguments.command) }

  /// The exit status if the command could not be started for reasons of its own, as env(1) has it.
  static let failed: CInt = 125
  private static let (cannotRun, notFound): (CInt, CInt) = (126, 127)

  init(_ arguments: [[UInt8]]) throws(Failure) {
    do throws(Failure) { self.arguments = try RunArguments(arguments) } catch {
      throw Failure(message: error.message, status: Self.failed)
    }
  }

  /// Never returns: the process becomes the command.
  func run() throws(Failure) -> Never {
    do throws(Failure) { try start() } catch {
      throw Failure(message: error.message, status: Self.failed)
    }
  }

  private func start() throws(Failure) -> Never {
    let inherited = InheritedDescriptors()
    let mountPoint = try mountPoint()
    try wine.check()
    let mount = PrivateMount(mountPoint: mountPoint, main: arguments.main, options: arguments.options)
    let process: BackgroundProcess
    do throws(Errno) {
      process = try BackgroundProcess.startDetached { channel in become(mount, channel, inherited) }
    } catch { throw .failed("cannot start a background process: \(error)") }
    let daemon = MountArguments(private: arguments.main, at: mountPoint.path, options: arguments.options)
    MountCommand(private: daemon).serve(process, closing: inherited)
  }

  private func mountPoint() throws(Failure) -> MountPoint {
    let given = arguments.mountPoint ?? arguments.main
    let point = try MountPoint(given)
    let status = try Failure.naming(point.path.shown) { () throws(Errno) in
      try point.open([.pathOnly]).attributes()
    }
    if !status.isDirectory {
      throw .failed("\(given.shown): the mount point must be a directory; name one with '--at DIR'")
    }
    return point
  }

  /// Mounts, and becomes the command.
  private func become(
    _ mount: PrivateMount, _ channel: consuming ParentChannel, _ inherited: InheritedDescriptors
  ) -> Never {
    do throws(Failure) {
      let directory = try? realPath([UInt8(ascii: ".")])
      try Self.check(channel.next(), isReady: false)
      try Self.send(mount.make(), by: channel)
      try Self.check(channel.next(), isReady: true)
      try Self.enter(directory, mount.mountPoint)
    } catch {
      Terminal.printError(error.message)
      exit(Self.failed)
    }
    inherited.passOn()
    if wine.isCertain { wine.run(execute) }
    execute()
  }

  private static func send(_ mount: consuming ReceivedMount, by channel: borrowing ParentChannel)
    throws(Failure)
  {
    do throws(Errno) { try channel.send(mount) } catch { try check(channel.next(), isReady: true) }
  }

  private static func check(_ report: ParentChannel.Report, isReady: Bool) throws(Failure) {
    switch report {
    case .ready where isReady, .prepared where !isReady: return
    case .failed(let message): throw .failed(message)
    default: throw .failed("the background process ended before the mount was usable")
    }
  }

  /// Enters the working directory again if the mount covers it.
  private static func enter(_ directory: [UInt8]?, _ mountPoint: MountPoint) throws(Failure) {
    guard let directory, directory.isPath(inside: mountPoint.path) else { return }
    try Failure.naming("\(directory.shown): the working directory is not in the mount") { () throws(Errno) in
      try ThisProcess.enter(directory)
    }
  }

  private func execute() -> Never {
    let program = arguments.command[0].shown
    let error = ThisProcess.execute(arguments.command)
    // execvp(3) reports directories on PATH that it may not search; shells do not.
    let isFound = isFound
    Terminal.printError(isFound ? "\(program): \(error)" : "\(program): command not found")
    exit(isFound && error != .noSuchFileOrDirectory ? Self.cannotRun : Self.notFound)
  }

  /// Whether the command is a path, or one of the directories on PATH has it.
  private var isFound: Bool {
    let (name, slash) = (arguments.command[0], UInt8(ascii: "/"))
    guard !name.contains(slash), let list = getenv("PATH") else { return true }
    let directories = [UInt8](bytesOf: list).split(
      separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
    return directories.contains { directory in
      // An empty one is the working directory.
      let path = directory.isEmpty ? name : directory + [slash] + name
      return (try? Descriptor.open(path, [.pathOnly])) != nil
    }
  }
}
