import Glibc
import Posix
import TestSupport

/// Reads at random in a mount whose layers change: `stressreader MOUNTPOINT SECONDS SEED`.
/// Prints the number of reads. Exits with status 1 and a message for each violation.
@main struct StressReader {
  private let root: ByteString
  private var random: SplitMix64
  private var done = 0
  private var problems: [String] = []

  static func main() throws {
    let arguments = CommandLine.arguments
    guard arguments.count == 4, let seconds = Double(arguments[2]), let seed = UInt64(arguments[3]) else {
      throw TestFailure("usage: stressreader MOUNTPOINT SECONDS SEED")
    }
    var reader = StressReader(root: ByteString(arguments[1]), random: SplitMix64(seed: seed))
    let end = Clock.now + seconds
    while Clock.now < end && reader.problems.count < 20 { reader.step() }
    print(reader.done)
    for problem in reader.problems {
      _ = (problem + "\n").utf8CString.withUnsafeBytes { write(2, $0.baseAddress, $0.count - 1) }
    }
    exit(reader.problems.isEmpty ? 0 : 1)
  }

  private mutating func step() {
    let depth = random.number(1...3)
    var path: [ByteString] = (1..<depth).map { _ in ByteString("d\(random.number(0...5))") }
    let choice = random.number(0...9)
    if choice < 8 {
      path.append(random.pick(["f", "w"] as [ByteString]) + ByteString("\(random.number(0...7))"))
    }
    do {
      if choice < 6 { try read(path) } else if choice < 8 { try stat(path) } else { try list(path) }
      done += 1
    } catch let error as DiskError {
      if !Self.expectedErrors.contains(error.errno) { problems.append("\(error)") }
    } catch let error as Errno {
      if !Self.expectedErrors.contains(error) { problems.append("\(path): \(error)") }
    } catch {
      problems.append("\(path): \(error)")
    }
  }

  /// Errors caused by entries that vanish, move or change their type.
  private static let expectedErrors: Set<Errno> = [
    .noSuchFileOrDirectory, .notDirectory, .isDirectory, .tooManySymbolicLinkLevels, .staleFileHandle,
  ]

  private mutating func read(_ path: [ByteString]) throws {
    guard let name = path.last else { return }
    let directory = try open(Array(path.dropLast()))
    let file = try withCName(name.bytes) { name throws(Errno) in
      try directory.open(name, [.read, .noFollow, .nonBlocking]).release()
    }
    defer { close(file) }
    let content = try ByteString.readAll(file)
    if let flaw = StressPattern.flaw(in: content, isReplacedOnly: name.hasPrefix("f")) {
      problems.append("\(path): \(flaw)")
    }
  }

  private mutating func stat(_ path: [ByteString]) throws {
    guard let name = path.last else { return }
    let directory = try open(Array(path.dropLast()))
    _ = try withCName(name.bytes) { name throws(Errno) in try directory.attributes(of: name) }
  }

  private mutating func list(_ path: [ByteString]) throws {
    let directory = try open(path)
    var names: [ByteString] = []
    try directory.forEachEntry { entry throws(Errno) in
      names.append(ByteString(cString: entry.name, count: entry.nameLength))
    }
    if Set(names).count != names.count { problems.append("\(path): listed twice: \(names.sorted())") }
    if let whiteout = names.first(where: { $0.hasPrefix(".wh.") }) {
      problems.append("\(path): lists \(whiteout)")
    }
  }

  /// Opens a directory component by component with O_NOFOLLOW: the links of this test lead outside.
  private func open(_ path: [ByteString]) throws -> Descriptor {
    var directory = try withCName(root.bytes) { path throws(Errno) in
      try Descriptor.open(path, [.read, .directory]).release()
    }
    for name in path {
      let holder = Descriptor(owning: directory)
      directory = try withCName(name.bytes) { name throws(Errno) in
        try holder.open(name, [.read, .directory, .noFollow]).release()
      }
    }
    return Descriptor(owning: directory)
  }
}
