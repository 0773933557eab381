import Glibc
import Posix

/// Makes the measurements of scripts/bench. Unless noted otherwise it prints a line of two numbers: elapsed
/// nanoseconds and CPU nanoseconds of the process.
///
///     benchprobe pass ROOT ACCESS LIST [ACCESS LIST…]     accesses every path of the list once; prints nothing
///     benchprobe warm ROOT ACCESS LIST                    an access with warm caches
///     benchprobe once ROOT ACCESS LIST                    an access, each path accessed once
///     benchprobe walk ROOT | grep ROOT                    an entry of a walk, or of one that reads files
///     benchprobe tree ROOT                                lines `walk` and `read`: an entry of a walk in the order of
///                                                         nftw(3), and a file when all are read in that order
///     benchprobe parallel ROOT LIST THREADS               reading a file, in concurrent threads
///     benchprobe large FILE ACCESS                        a MiB, or a random read
///     benchprobe change FOLDER CHANGE COUNT               a change, or a MiB that is written
///     benchprobe run ROOT PROGRAM [ARGUMENT…]             the program, in ROOT
///     benchprobe start FILE PROGRAM [ARGUMENT…]           the program, until FILE exists
///     benchprobe files ROOT FOLDERS FILES                 makes empty files; prints nothing
///     benchprobe largefile FILE MEGABYTES                 makes a large file; prints nothing
///     benchprobe memory MEGABYTES                         uses so much memory once; prints nothing
///     benchprobe prepare MAIN SUBSTITUTION CHANGES        makes the layers for the delays
///     benchprobe delay MAIN SUBSTITUTION MOUNT KIND CHANGES
///                                                         microseconds from each change to its visibility
///     benchprobe routes CONTROLFILE ROUNDS                per round, nanoseconds of a comment, of a URL, and
///                                                         of a URL whose result is read
///
/// A list is a file of paths below ROOT, each terminated by NUL.
@main enum BenchProbe {
  static func main() {
    do {
      let arguments = Array(CommandLine.arguments.dropFirst())
      guard let kind = arguments.first else { throw Failure("missing command") }
      try run(kind, Array(arguments.dropFirst()))
    } catch {
      report("benchprobe: \(error)")
      exit(1)
    }
  }

  private static func run(_ kind: String, _ arguments: [String]) throws(Failure) {
    switch (kind, arguments.count) {
    case ("pass", 3...): try pass(arguments[0], arguments.dropFirst())
    case ("warm", 3), ("once", 3):
      let access = try access(arguments[1])
      let list = try PathList(file: arguments[2])
      try enter(arguments[0])
      print(kind == "warm" ? try access.cost(over: list) : try once(access, list))
    case ("walk", 1), ("grep", 1):
      var walk = Walk(reads: kind == "grep")
      try enter(arguments[0])
      print(try Cost { () throws(Failure) in try walk.run(".") })
    case ("tree", 1):
      var tree = TreeInOrder()
      try enter(arguments[0])
      print("walk", try Cost { () throws(Failure) in try tree.walk() })
      print("read", try Cost { () throws(Failure) in try tree.readAll() })
    case ("parallel", 3):
      let list = try PathList(file: arguments[1])
      try enter(arguments[0])
      print(try Readers(count: try number(arguments[2]), list: list).cost())
    case ("large", 2):
      guard let access = LargeAccess(rawValue: arguments[1]) else {
        throw Failure("unknown: \(arguments[1])")
      }
      print(try access.cost(of: arguments[0]))
    case ("change", 3):
      guard let change = Change(rawValue: arguments[1]) else { throw Failure("unknown: \(arguments[1])") }
      try enter(arguments[0])
      print(try change.cost(count: try number(arguments[2])))
    case ("run", 2...):
      try enter(arguments[0])
      print(try TimedProgram(Array(arguments.dropFirst())).cost())
    case ("start", 2...):
      print(try TimedProgram(Array(arguments.dropFirst())).cost(untilExists: arguments[0]))
    case ("files", 3):
      try Trees.makeFiles(arguments[0], folders: try number(arguments[1]), files: try number(arguments[2]))
    case ("memory", 1): try useMemory(megabytes: try number(arguments[0]))
    case ("largefile", 2): try Trees.makeLarge(arguments[0], megabytes: try number(arguments[1]))
    case ("prepare", 3):
      try Delays(main: arguments[0], substitution: arguments[1], mount: "").prepare(try number(arguments[2]))
    case ("delay", 5):
      guard let kind = ChangeKind(rawValue: arguments[3]) else { throw Failure("unknown: \(arguments[3])") }
      let delays = Delays(main: arguments[0], substitution: arguments[1], mount: arguments[2])
      try delays.measure(kind, try number(arguments[4]))
    case ("routes", 2): try routes(arguments[0], rounds: try number(arguments[1]))
    default: throw Failure("unknown arguments: \(kind) \(arguments)")
    }
  }

  private static func pass(_ root: String, _ pairs: ArraySlice<String>) throws(Failure) {
    guard pairs.count.isMultiple(of: 2) else { throw Failure("an access without a list") }
    var passes: [(access: Access, list: PathList)] = []
    for index in stride(from: pairs.startIndex, to: pairs.endIndex, by: 2) {
      passes.append((try access(pairs[index]), try PathList(file: pairs[index + 1])))
    }
    try enter(root)
    let buffer = FileBuffer()
    for (access, list) in passes { try access.pass(over: list.paths, buffer) }
  }

  private static func once(_ access: Access, _ list: PathList) throws(Failure) -> Cost {
    let buffer = FileBuffer()
    return try Cost { () throws(Failure) in
      try access.pass(over: list.paths, buffer)
      return list.paths.count
    }
  }

  private static func routes(_ file: String, rounds: Int) throws(Failure) {
    var trips = try RouteTrips(file)
    // The first round is a warm-up.
    _ = try trips.round()
    for _ in 0..<rounds {
      let time = try trips.round()
      print(time.comment, time.post, time.trip)
    }
  }

  private static func number(_ text: String) throws(Failure) -> Int {
    guard let number = Int(text), number > 0 else { throw Failure("not a positive number: \(text)") }
    return number
  }

  private static func access(_ name: String) throws(Failure) -> Access {
    guard let access = Access(rawValue: name) else { throw Failure("unknown: \(name)") }
    return access
  }

  /// Changes to the directory that paths are relative to, so that lookups above the mount are not measured.
  private static func enter(_ root: String) throws(Failure) {
    guard chdir(root) == 0 else { throw Failure(refused: root) }
  }

  private static func report(_ line: String) {
    _ = (line + "\n").utf8CString.withUnsafeBytes { write(2, $0.baseAddress, $0.count - 1) }
  }
}

/// The reason why a measurement failed.
struct Failure: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }

  /// A system call failed with the current errno.
  init(refused subject: String) { description = "\(subject): \(Errno.current)" }
}
