import Glibc
import Posix

/// An access to one path.
enum Access: String {
  case stat
  case open
  case read
  case list
  /// stat(2) of a missing name.
  case missing

  /// The minimum duration of a measurement, in nanoseconds.
  private static let minimumTime = 100_000_000
  /// If one pass takes longer, in nanoseconds, fewer paths are measured.
  private static let maximumTime = 2_000_000_000

  /// The cost of an access with warm caches: whole passes after a first one, which counts only if it alone takes
  /// far longer than the minimum.
  func cost(over list: PathList) throws(Failure) -> Cost {
    let buffer = FileBuffer()
    var paths = list.paths[...]
    let first = try Cost { () throws(Failure) in
      paths = list.paths.prefix(try warm(list.paths, buffer))
      return paths.count
    }
    if first.elapsed * Double(paths.count) > Double(5 * Self.minimumTime) { return first }
    return try Cost { () throws(Failure) in
      var passes = 0
      let start = now()
      repeat {
        try pass(over: paths, buffer)
        passes += 1
      } while now() - start < Self.minimumTime
      return passes * paths.count
    }
  }

  /// Accesses every path once.
  func pass(over paths: some Sequence<CName>, _ buffer: FileBuffer) throws(Failure) {
    for path in paths where !run(path, buffer) {
      throw Failure(refused: "\(self) of \(String(cString: path))")
    }
  }

  /// Accesses paths until `maximumTime` is over.
  /// - Returns: the number of accessed paths.
  private func warm(_ paths: [CName], _ buffer: FileBuffer) throws(Failure) -> Int {
    let start = now()
    var done = 0
    while done < paths.count && now() - start < Self.maximumTime {
      let next = min(done + 100, paths.count)
      try pass(over: paths[done..<next], buffer)
      done = next
    }
    return done
  }

  /// Makes the access.
  /// - Returns: whether it had the expected result.
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

/// A buffer larger than any file of the corpus, so that one read(2) reads it whole.
final class FileBuffer {
  private let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: 128 * 1024, alignment: 4096)

  deinit { bytes.deallocate() }

  /// Opens a file, reads it to its end and closes it.
  /// - Returns: whether all calls succeeded.
  @inline(__always)
  func read(_ path: CName, in folder: CInt = AT_FDCWD) -> Bool {
    let file = openat(folder, path, O_RDONLY)
    guard file >= 0 else { return false }
    // As programs do, read until read(2) returns 0.
    var count = 0
    repeat { count = Glibc.read(file, bytes.baseAddress, bytes.count) } while count > 0
    return close(file) == 0 && count == 0
  }
}
