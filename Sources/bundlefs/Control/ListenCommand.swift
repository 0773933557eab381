import ControlClient
import Glibc
import Posix
import Routing

/// `bundlefs listen MOUNTPOINT [NAME…] [--since SEQUENCE] [--count N] [--timeout SECONDS] [--exec COMMAND…]`.
struct ListenCommand {
  private let control: ControlFileLocation
  private let options: ListenOptions

  init(_ arguments: [[UInt8]]) throws(Failure) {
    options = try ListenOptions(arguments)
    control = try MountPoint(mounted: options.mountPoint).controlFile()
  }

  /// Returns when the bundle is unmounted, after a time, or after a number of results.
  /// - Returns: the exit status: 1 if there were fewer results.
  func run() throws(Failure) -> CInt {
    signal(SIGPIPE, SIG_DFL)
    endWhenOutputCloses()
    var count = 0
    var failure: Failure?
    do throws(Errno) {
      let listener = try ResultListener(control, since: options.since)
      if let seconds = options.timeout { try Self.cancel(listener, after: seconds) }
      _ = try listener.run { event in
        switch event {
        case .result(let result) where options.selects(result):
          do throws(Failure) { try handle(result) } catch {
            failure = error
            return listener.cancel()
          }
          count += 1
          if count == options.count { listener.cancel() }
        case .result: break
        case .missed(let numbers):
          Terminal.printError("missed results \(numbers.lowerBound) to \(numbers.upperBound)")
        }
      }
    } catch {
      if error == .socketNotConnected {
        throw .failed("\(options.mountPoint.shown): the daemon of the mount has died")
      }
      if !error.isEndOfMount { throw .failed("\(control.path.shown): \(error)") }
    }
    if let failure { throw failure }
    return count < options.count ?? 0 ? 1 : 0
  }

  private func handle(_ result: ResultLine) throws(Failure) {
    if options.command.isEmpty {
      Terminal.print(result.bytes.shown.escapingControls)
    } else {
      try EventCommand(options.command).run(result)
    }
  }

  private static func cancel(_ listener: ResultListener, after seconds: Double) throws(Errno) {
    try Posix.Thread.startDetached(name: "timeout") {
      var (rest, left) = (timespec(), timespec())
      rest.tv_sec = Int(seconds)
      rest.tv_nsec = Int((seconds - Double(rest.tv_sec)) * 1e9)
      while nanosleep(&rest, &left) != 0, errno == EINTR { rest = left }
      listener.cancel()
    }
  }

  /// Ends the process as a write to a pipe without a reader does, but when the reader closes it and not with the next
  /// result. Without a thread, only that write ends it.
  private func endWhenOutputCloses() {
    try? Posix.Thread.startDetached(name: "output") {
      var output = pollfd(fd: STDOUT_FILENO, events: 0, revents: 0)
      while poll(&output, 1, -1) < 0, errno == EINTR {}
      if output.revents & Int16(POLLERR) != 0 { kill(getpid(), SIGPIPE) }
    }
  }
}
