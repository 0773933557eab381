import Glibc
import Posix
import TestSupport
import Testing

@Suite struct InotifyTests {
  @Test("an open directory is watched from any thread, and no working directory changes")
  func openDirectory() throws {
    let folder = try TemporaryFolder()
    let before = workingDirectory()
    let (found, within) = (Locked<[[UInt8]]>([]), Locked(""))
    let watcher = try Thread(name: "watcher") {
      found.withLock { $0 = (try? Self.namesCreated(in: folder, "by the thread")) ?? [] }
      within.withLock { $0 = workingDirectory() }
    }
    watcher.join()
    #expect(found.withLock { $0 } == [Array("by the thread".utf8)])
    #expect(within.withLock { $0 == "/" || $0 == before }, "the thread stays in no watched directory")
    #expect(try Self.namesCreated(in: folder, "by the test") == [Array("by the test".utf8)])
    #expect(workingDirectory() == before)
  }

  /// Watches a folder, creates a file in it, and returns the names in the events.
  private static func namesCreated(in folder: TemporaryFolder, _ name: String) throws -> [[UInt8]] {
    let inotify = try Inotify()
    let directory = try withCName(folder.path.bytes) { path throws(Errno) in
      try Descriptor.open(path, [.pathOnly, .directory])
    }
    _ = try directory.withWatchPath { path throws(Errno) in try inotify.watch(path, .created) }
    try (folder / ByteString(name)).write("")
    return try inotify.read().map(\.name)
  }
}

private func workingDirectory() -> String {
  guard let path = getcwd(nil, 0) else { return "" }
  defer { free(path) }
  return String(cString: path)
}
