import Fuse
import Glibc
import Posix
import TestSupport
import Testing

@testable import Layers
@testable import Volume

@Suite struct WatchTableTests {
  @Test("a watch that one thread removes while another adds it is added again", .timeLimit(.minutes(1)))
  func removedWhileAdded() throws {
    let folder = try TemporaryFolder()
    let layer = try DirectoryLayer(path: folder.path.bytes, index: 0, covered: nil)
    let table = try WatchTable()
    let isDone = Locked(false)
    // Makes its node the last owner of the inode's watch again and again.
    let rival = ThreadHandle(
      try Thread(name: "rival") {
        while !isDone.withLock({ $0 }) {
          _ = try? table.watch(layer.root, for: NodeID(rawValue: 2))
          table.removeWatches(of: NodeID(rawValue: 2))
        }
      })
    defer {
      isDone.withLock { $0 = true }
      rival.join()
    }
    for round in 0..<5000 {
      let watch = try #require(try table.watch(layer.root, for: NodeID(rawValue: 3)))
      guard try Self.watches(of: table.inotify.rawValue).contains(watch) else {
        Issue.record("round \(round): the kernel does not have the watch \(watch)")
        return
      }
      table.removeWatches(of: NodeID(rawValue: 3))
      _ = try table.inotify.read()
    }
  }

  /// The watch descriptors of an inotify instance.
  private static func watches(of descriptor: CInt) throws -> Set<WatchDescriptor> {
    let lines = try ByteString("/proc/self/fdinfo/\(descriptor)").readText().split(separator: "\n")
    return Set(
      lines.compactMap { line in
        guard line.hasPrefix("inotify wd:") else { return nil }
        return WatchDescriptor(line.dropFirst(11).prefix { $0 != " " }, radix: 16)
      })
  }

  @Test("a file is watched once, whichever thread is faster")
  func fileWatchedOnce() throws {
    let folder = try TemporaryFolder()
    try (folder / "a").write("")
    try (folder / "b").write("")
    let table = try WatchTable()
    let node = NodeID(rawValue: 2)
    for name in ["a", "b"] as [ByteString] {
      try withCName((folder / name).bytes) { path throws(Errno) in
        try table.watchFile(node, at: path, follows: true)
      }
    }
    #expect(table.count == 1)
    table.removeFileWatch(node)
    #expect(try table.count == 0 && Self.watches(of: table.inotify.rawValue).isEmpty)
  }

  @Test("a removal is known for a while, and beyond that presumed")
  func removedWatches() {
    var removed = RemovedWatches()
    removed.append(5)
    #expect(removed.contains(5, since: 0) && !removed.contains(5, since: 1) && !removed.contains(6, since: 0))
    for watch in 0..<WatchDescriptor(RemovedWatches.capacity) { removed.append(100 + watch) }
    #expect(removed.contains(100, since: 1) && !removed.contains(6, since: 1))
    #expect(removed.contains(6, since: 0), "what came first is no longer known")
    #expect(!removed.contains(100, since: 2) && removed.contains(101, since: 2))
  }
}
