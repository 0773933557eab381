import ControlClient
import Glibc
import Posix
import Routing

/// `bundlefs listen MOUNTPOINT [NAME…] [--since SEQUENCE]`.
struct ListenCommand {
  private let control: ControlFileLocation
  private let names: [[UInt8]]
  private let since: UInt64?

  init(_ arguments: [[UInt8]]) throws(Failure) {
    var operands: [[UInt8]] = []
    var since: UInt64?
    var rest = arguments[...]
    while let argument = rest.popFirst() {
      if argument == Array("--since".utf8) {
        guard let number = rest.popFirst().flatMap({ UInt64($0.shown) }) else {
          throw .usage("'--since' needs the sequence number of a result")
        }
        since = number
      } else if argument.starts(with: "--".utf8) {
        throw .usage("'listen' has no option '\(argument.shown)'")
      } else {
        operands.append(argument)
      }
    }
    guard let mountPoint = operands.first else { throw .usage("'listen' needs a MOUNTPOINT") }
    names = Array(operands.dropFirst())
    self.since = since
    control = try MountPoint(mounted: mountPoint).controlFile()
  }

  /// Returns when the mount ends.
  func run() throws(Failure) {
    signal(SIGPIPE, SIG_DFL)
    endWhenOutputCloses()
    do throws(Errno) {
      _ = try ResultListener(control, since: since).run { event in
        switch event {
        case .result(let result):
          if names.isEmpty || result.isPosted(as: names) {
            Terminal.print(result.bytes.shown.escapingControls)
          }
        case .missed(let numbers):
          Terminal.printError("missed results \(numbers.lowerBound) to \(numbers.upperBound)")
        }
      }
    } catch {
      if !error.isEndOfMount { throw .failed("\(control.path.shown): \(error)") }
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
