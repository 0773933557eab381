import Glibc
import Posix

/// What a program does with one path.
enum Access: String {
  case stat
  case open
  case read
  case list
  /// The stat of a name that is not there.
  case missing

  /// Room for a whole file of the corpus, so that one read(2) fetches it.
  nonisolated(unsafe) private static let buffer = UnsafeMutableRawBufferPointer.allocate(
    byteCount: 128 * 1024, alignment: 4096)
  /// What is timed lasts at least so long, in nanoseconds.
  private static let leastTime = 100_000_000
  /// Of whoever needs longer than this for all the paths, fewer are asked.
  private static let mostTime = 2_000_000_000

  /// Nanoseconds an operation, once all is warm: one pass that does not count, then whole passes.
  /// - Returns: the time that passes, and the processor's time that this process takes of it.
  func cost(over list: PathList) throws(Failure) -> (elapsed: Double, processor: Double) {
    let paths = list.paths.prefix(try affordable(list.paths))
    var passes = 0
    var time = 0
    let start = now()
    let processorStart = now(CLOCK_PROCESS_CPUTIME_ID)
    repeat {
      try pass(over: paths)
      passes += 1
      time = now() - start
    } while time < Self.leastTime
    let processorTime = now(CLOCK_PROCESS_CPUTIME_ID) - processorStart
    let operations = Double(passes * paths.count)
    return (Double(time) / operations, Double(processorTime) / operations)
  }

  /// Does it with every path, once.
  func pass(over paths: ArraySlice<CName>) throws(Failure) {
    let buffer = Self.buffer
    for path in paths where !run(path, buffer) {
      throw Failure(refused: "\(self) of \(String(cString: path))")
    }
  }

  /// Does it with one path after the other; how many there was time for.
  private func affordable(_ paths: [CName]) throws(Failure) -> Int {
    let start = now()
    var done = 0
    while done < paths.count && now() - start < Self.mostTime {
      let next = min(done + 100, paths.count)
      try pass(over: paths[done..<next])
      done = next
    }
    return done
  }

  /// Whether it went as it should.
  @inline(__always)
  private func run(_ path: CName, _ buffer: UnsafeMutableRawBufferPointer) -> Bool {
    switch self {
    case .stat:
      var attributes = Glibc.stat()
      return fstatat(AT_FDCWD, path, &attributes, 0) == 0
    case .missing:
      var attributes = Glibc.stat()
      return fstatat(AT_FDCWD, path, &attributes, 0) != 0 && errno == ENOENT
    case .open:
      let file = Glibc.open(path, O_RDONLY)
      return file >= 0 && close(file) == 0
    case .read:
      let file = Glibc.open(path, O_RDONLY)
      guard file >= 0 else { return false }
      // A program learns of the end by a read that returns nothing.
      var count = 0
      repeat { count = Glibc.read(file, buffer.baseAddress, buffer.count) } while count > 0
      return close(file) == 0 && count == 0
    case .list:
      guard let folder = opendir(path) else { return false }
      while readdir(folder) != nil {}
      return closedir(folder) == 0
    }
  }
}
