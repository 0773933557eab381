import Glibc
import Posix

/// The measuring half of scripts/bench, which says what to measure, and where:
///
///     benchprobe pass ROOT ACCESS LIST [ACCESS LIST…]     does it with every path of the list, once
///     benchprobe warm ROOT ACCESS LIST                    nanoseconds an access, once all is warm:
///                                                         those that pass, and the processor's
///     benchprobe prepare MAIN SUBSTITUTION CHANGES        makes the layers for the delays
///     benchprobe delay MAIN SUBSTITUTION MOUNT KIND CHANGES
///                                                         microseconds from each change to its being seen
///     benchprobe routes CONTROLFILE ROUNDS                nanoseconds, a line each round: of a comment, of a
///                                                         URL, of a URL whose result is read
///
/// A list is a file of paths below ROOT, each followed by NUL.
@main enum BenchProbe {
  static func main() {
    do {
      try run(Array(CommandLine.arguments.dropFirst()))
    } catch {
      report("benchprobe: \(error)")
      exit(1)
    }
  }

  private static func run(_ arguments: [String]) throws(Failure) {
    switch arguments.first {
    case "warm" where arguments.count == 4:
      let access = try access(arguments[2])
      let list = try PathList(file: arguments[3])
      try enter(arguments[1])
      let cost = try access.cost(over: list)
      print(cost.elapsed, cost.processor)
      return
    case "pass" where arguments.count >= 4 && arguments.count.isMultiple(of: 2):
      var passes: [(access: Access, list: PathList)] = []
      for place in stride(from: 2, to: arguments.count, by: 2) {
        passes.append((try access(arguments[place]), try PathList(file: arguments[place + 1])))
      }
      try enter(arguments[1])
      for (access, list) in passes { try access.pass(over: list.paths[...]) }
      return
    case "prepare" where arguments.count == 4:
      guard let changes = Int(arguments[3]) else { break }
      try Delays(main: arguments[1], substitution: arguments[2], mount: "").prepare(changes)
      return
    case "delay" where arguments.count == 6:
      guard let kind = ChangeKind(rawValue: arguments[4]), let changes = Int(arguments[5]) else { break }
      let delays = Delays(main: arguments[1], substitution: arguments[2], mount: arguments[3])
      try delays.measure(kind, changes)
      return
    case "routes" where arguments.count == 3:
      guard let rounds = Int(arguments[2]) else { break }
      var trips = try RouteTrips(arguments[1])
      // What is made at first use is not what is measured.
      _ = try trips.round()
      for _ in 0..<rounds {
        let time = try trips.round()
        print(time.comment, time.post, time.trip)
      }
      return
    default: break
    }
    throw Failure("unknown arguments: \(arguments)")
  }

  private static func access(_ name: String) throws(Failure) -> Access {
    guard let access = Access(rawValue: name) else { throw Failure("unknown: \(name)") }
    return access
  }

  /// Paths are taken from here on: what lies above a mount costs the same for all, and is not measured.
  private static func enter(_ root: String) throws(Failure) {
    guard chdir(root) == 0 else { throw Failure(refused: root) }
  }

  private static func report(_ line: String) {
    _ = (line + "\n").utf8CString.withUnsafeBytes { write(2, $0.baseAddress, $0.count - 1) }
  }
}

/// Why nothing could be measured.
struct Failure: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }

  /// What the system refused just now; errno says why.
  init(refused what: String) { description = "\(what): \(Errno.current)" }
}

/// Time that only goes forward, in nanoseconds.
func now(_ clock: clockid_t = CLOCK_MONOTONIC) -> Int {
  var time = timespec()
  clock_gettime(clock, &time)
  return time.tv_sec * 1_000_000_000 + time.tv_nsec
}
