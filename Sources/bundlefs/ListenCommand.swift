import Glibc
import Posix
import Routing

/// `bundlefs listen MOUNTPOINT [NAME…] [--since SEQUENCE]`.
struct ListenCommand {
  private let mountPoint: MountPoint
  /// The mount's number.
  private let mount: Int?
  private let control: MountedControl
  private let names: [[UInt8]]
  /// Results up to this one are not printed; nil: those that are there already.
  private let since: UInt64?

  /// Reads what follows `listen`.
  init(_ arguments: [[UInt8]]) throws(Failure) {
    var operands: [[UInt8]] = []
    var since: UInt64?
    var rest = arguments[...]
    while let argument = rest.popFirst() {
      if argument == Array("--since".utf8) {
        guard let number = rest.popFirst().flatMap({ UInt64($0.shown) }) else {
          throw .usage("'--since' needs the number of a result after it")
        }
        since = number
      } else if argument.starts(with: "--".utf8) {
        throw .usage("unknown option '\(argument.shown)' of 'listen'")
      } else {
        operands.append(argument)
      }
    }
    guard let given = operands.first else { throw .usage("'listen' needs a MOUNTPOINT") }
    names = Array(operands.dropFirst())
    self.since = since
    mountPoint = try MountPoint(mounted: given)
    mount = MountTableEntry.top(at: mountPoint.path)?.id
    control = try MountedControl(of: mountPoint)
  }

  /// Prints results as they come, a line each, until the mount or the reader of the output is gone, or a signal
  /// ends it.
  func run() throws(Failure) {
    // A reader that is gone shows when we write; the exit status is then that of every program in a pipe.
    signal(SIGPIPE, SIG_DFL)
    var last = since
    while true {
      do throws(Errno) {
        try listen(from: &last)
      } catch {
        if error.isEndOfMount { return }
        throw .failed("\(control.path.shown): \(error)")
      }
      // Sent away, so that the mount can be unmounted; if it was not, the listening goes on.
      for _ in 0..<30 {
        usleep(100_000)
        if MountTableEntry.top(at: mountPoint.path)?.id != mount { return }
      }
    }
  }

  /// Prints results until we are told to go.
  private func listen(from last: inout UInt64?) throws(Errno) {
    let file = try control.open([.read])
    var place: UInt64
    if let last { place = last } else { place = try MountedControl.results(of: file).last?.sequence ?? 0 }
    defer { last = place }
    try printNew(file, &place, isFirst: true)
    while file.waitReadable() {
      // Who is told while yet another writes may read what was there before.
      var patience = 20
      while try !printNew(file, &place), patience > 0 {
        usleep(1000)
        patience -= 1
      }
      while try printNew(file, &place) {}
    }
    // Also what came in the same moment.
    try printNew(file, &place)
  }

  /// - Returns: whether there was a new one.
  @discardableResult
  private func printNew(
    _ file: borrowing Descriptor, _ last: inout UInt64, isFirst: Bool = false
  ) throws(Errno) -> Bool {
    let before = last
    let results = try MountedControl.results(of: file)
    // A number of an earlier mount says nothing here.
    if isFirst, let newest = results.last, newest.sequence < last { last = 0 }
    if let first = results.first, first.sequence - 1 > last {
      Terminal.printError("results \(last + 1) to \(first.sequence - 1) are gone already")
    }
    for result in results where result.sequence > last {
      last = result.sequence
      if names.isEmpty || result.isPosted(as: names) { Terminal.print(result.bytes.shown) }
    }
    return last != before
  }
}

extension Errno {
  /// Whether the mount is gone.
  fileprivate var isEndOfMount: Bool {
    self == .socketNotConnected || rawValue == ECONNABORTED
  }
}
