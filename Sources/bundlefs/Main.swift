import Glibc
import Posix

#if !(Archives && Networking)
#error("the command needs the traits 'Archives' and 'Networking', which are on by default")
#endif

@main
enum Main {
  static func main() {
    let arguments = ThisProcess.arguments
    do throws(Failure) {
      // Each error would name something else that was looked for below /proc.
      if !ThisProcess.hasProcfs { throw .failed("procfs is not mounted at /proc, and bundlefs needs it") }
      let command = arguments.dropFirst().first.map { String(decoding: $0, as: UTF8.self) }
      let rest = Array(arguments.dropFirst(2))
      // Its first operand can have the name of a command.
      if MountArguments.isOverlayProgram(arguments) { return try MountCommand(arguments).run() }
      switch command {
      case let command? where Help.commands.contains(command) && Help.isRequestedForCommand(by: rest):
        Terminal.print(Help.text(for: command))
      case "unmount": exit(try UnmountCommand(rest).run())
      case "run": try RunCommand(rest).run()
      case "list": try ListCommand(rest).run()
      case "upgrade": try UpgradeCommand(rest).run()
      case "--can-resume": try UpgradeCandidate.answer(rest)
      case "--resume": try MountCommand(resuming: rest).run()
      case "status": try StatusCommand(rest).run()
      case "health": exit(try HealthCommand(rest).run())
      case "metrics": try MetricsCommand(rest).run()
      case "route": try route(rest, posts: true)
      case "match": try route(rest, posts: false)
      case "listen": exit(try ListenCommand(rest).run())
      case "diff": exit(try ComparisonCommand(rest, isTree: false).run())
      case "tree": exit(try ComparisonCommand(rest, isTree: true).run())
      case "layers": try LayersCommand(rest).run()
      case "override": exit(try OverrideCommand(rest).run())
      case "apply": exit(try ApplyCommand(rest).run())
      case "revert": exit(try RevertCommand(rest).run())
      case "ui": try UICommand(rest).run()
      case "open": exit(try OpenCommand(rest).run())
      case "resources": try ResourcesCommand(rest).run()
      case "sync": try ControlFileCommand.sync(rest).run()
      case "invalidate": try ControlFileCommand.invalidate(rest).run()
      default:
        if let failure = UnknownCommand.failure(arguments) { throw failure }
        try MountCommand(arguments).run()
      }
    } catch {
      Terminal.printError(error.message)
      exit(error.status)
    }
  }

  private static func route(_ arguments: [[UInt8]], posts: Bool) throws(Failure) {
    var command = try RouteCommand(arguments, posts: posts)
    exit(try command.run())
  }
}

struct Failure: Error {
  let message: String
  /// 1 for an error, 2 for invalid arguments.
  let status: CInt

  static func failed(_ message: String) -> Failure { Failure(message: message, status: 1) }
  static func usage(_ message: String) -> Failure {
    Failure(message: "\(message) (see 'bundlefs -h')", status: 2)
  }

  /// Calls the body; its error becomes a failure whose message begins with the subject, such as a path.
  static func naming<Result: ~Copyable>(
    _ subject: String, _ body: () throws(Errno) -> Result
  ) throws(Failure) -> Result {
    do throws(Errno) { return try body() } catch { throw .failed("\(subject): \(error)") }
  }
}
