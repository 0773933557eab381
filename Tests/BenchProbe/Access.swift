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

  /// What is timed lasts at least so long, in nanoseconds.
  private static let leastTime = 100_000_000
  /// Of whoever needs longer than this for all the paths, fewer are asked.
  private static let mostTime = 2_000_000_000

  /// The cost of an access once all is warm: whole passes, after one that does not count, unless that alone
  /// took many times as long as is needed.
  func cost(over list: PathList) throws(Failure) -> Cost {
    let buffer = FileBuffer()
    var paths = list.paths[...]
    let first = try Cost { () throws(Failure) in
      paths = list.paths.prefix(try affordable(list.paths, buffer))
      return paths.count
    }
    if first.elapsed * Double(paths.count) > Double(5 * Self.leastTime) { return first }
    return try Cost { () throws(Failure) in
      var passes = 0
      let start = now()
      repeat {
        try pass(over: paths, buffer)
        passes += 1
      } while now() - start < Self.leastTime
      return passes * paths.count
    }
  }

  /// Does it with every path, once.
  func pass(over paths: some Sequence<CName>, _ buffer: FileBuffer) throws(Failure) {
    for path in paths where !run(path, buffer) {
      throw Failure(refused: "\(self) of \(String(cString: path))")
    }
  }

  /// Does it with one path after the other; how many there was time for.
  private func affordable(_ paths: [CName], _ buffer: FileBuffer) throws(Failure) -> Int {
    let start = now()
    var done = 0
    while done < paths.count && now() - start < Self.mostTime {
      let next = min(done + 100, paths.count)
      try pass(over: paths[done..<next], buffer)
      done = next
    }
    return done
  }

  /// Whether it went as it should.
  @inline(__always)
  private func run(_ path: CName, _ buffer: FileBuffer) -> Bool {
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
      return buffer.read(path)
    case .list:
      guard let folder = opendir(path) else { return false }
      while readdir(folder) != nil {}
      return closedir(folder) == 0
    }
  }
}

/// Room for a whole file of the corpus, so that one read(2) fetches it.
final class FileBuffer {
  private let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: 128 * 1024, alignment: 4096)

  deinit { bytes.deallocate() }

  /// Opens a file, reads it to its end and closes it; whether that went well.
  @inline(__always)
  func read(_ path: CName, in folder: CInt = AT_FDCWD) -> Bool {
    let file = openat(folder, path, O_RDONLY)
    guard file >= 0 else { return false }
    // A program learns of the end by a read that returns nothing.
    var count = 0
    repeat { count = Glibc.read(file, bytes.baseAddress, bytes.count) } while count > 0
    return close(file) == 0 && count == 0
  }
}
