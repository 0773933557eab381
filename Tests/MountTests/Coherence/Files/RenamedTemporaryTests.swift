import Glibc
import Posix
import TestSupport
import Testing

/// Files that programs replace by writing a temporary file and renaming it, while others list the folder.
extension MountTests {
  @Suite struct RenamedTemporaryTests {
    /// The contents that the file has in turn: one letter each.
    private static func content(_ round: Int) -> [UInt8] {
      [UInt8](repeating: UInt8(ascii: "a") + UInt8(round % 26), count: 3000)
    }

    private static func isWhole(_ content: [UInt8]) -> Bool {
      guard let letter = content.first, letter >= UInt8(ascii: "a") else { return false }
      return content == self.content(Int(letter - UInt8(ascii: "a")))
    }

    @Test(
      "a file that is replaced again and again is read whole, old or new, while its folder is listed",
      .timeLimit(.minutes(3)))
    func listedAndRead() throws {
      let fixture = try Fixture()
      try (fixture.main / "folder" / "file").write(Self.content(0))
      for name in 0..<30 { try (fixture.main / "folder" / ByteString("other\(name)")).write("x") }
      try withMount(fixture.setup) { mount in
        let isStopping = Locked(false)
        let folder = fixture.main / "folder"
        let rounds = Locked(0)
        let writer = try LoopThread("writer", until: isStopping) { _ in
          let round = rounds.withLock { rounds in
            rounds += 1
            return rounds
          }
          try (folder / "temporary").write(Self.content(round))
          try (folder / "temporary").rename(to: folder / "file")
        }
        let lister = try Self.lister(of: mount.point / "folder", until: isStopping)
        let (flaws, reads) = (Locked<[String]>([]), Locked(0))
        let readers = try (1...2).map { number in
          try LoopThread("reader \(number)", until: isStopping) { _ in
            let seen = try? (mount.point / "folder" / "file").read()
            reads.withLock { $0 += 1 }
            if let seen, !Self.isWhole(seen) {
              flaws.withLock { $0.append("\(seen.count) bytes, \(Set(seen))") }
            }
          }
        }
        let threads = [writer, lister] + readers
        _ = eventually(within: 90) {
          reads.withLock { $0 } > 200_000 || !flaws.withLock { $0 }.isEmpty
            || threads.contains { $0.isFinished }
        }
        isStopping.withLock { $0 = true }
        _ = eventually(within: 20) { threads.allSatisfy { $0.isFinished } }
        #expect(
          flaws.withLock { $0 }.isEmpty, "after \(reads.withLock { $0 }) reads: \(flaws.withLock { $0 })")
        for thread in threads { #expect(thread.failure == nil, "\(thread.name)") }
      }
    }

    private static func lister(of folder: ByteString, until isStopping: Locked<Bool>) throws -> LoopThread {
      try LoopThread("lister", until: isStopping) { _ in
        // The attributes make the kernel list with READDIRPLUS.
        for name in try folder.names() { _ = try? (folder / name).status() }
      }
    }
  }
}
