import Posix
import TestSupport

/// The times that a mount shows of directories that layers below take part in: a rename must not change them, though the plain
/// copy can have others.
struct MovedTimes {
  private var times: [(path: ByteString, modified: TimeSpec)] = []

  /// Reads those of the merged directories in a directory.
  init(of directory: ByteString, in mount: ByteString, _ trees: WriteModelTrees) throws {
    var pending = [directory]
    while let path = pending.popLast() {
      guard (try? (mount / path).status().kind) == .directory else { continue }
      if trees.isMerged(path) { times.append((path, try (mount / path).status().modified)) }
      pending += try (mount / path).names().map { path / $0 }
    }
  }

  /// Gives them to the plain copy of the directory, which has another path now.
  func set(from directory: ByteString, to moved: ByteString, in copy: ByteString) throws {
    for (path, modified) in times {
      let rest = ByteString(Array(path.bytes.dropFirst(directory.count)))
      try (copy / (moved + rest)).setModified(modified)
    }
  }
}
