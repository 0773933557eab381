import Glibc
import Posix
import TestSupport
import Testing

/// The events of the mount's own changes cost nothing, and those of other programs are not lost among them.
extension MountTests {
  @Suite struct OwnChangeTests {
    @Test("what is changed through the mount is neither invalidated nor announced", .timeLimit(.minutes(1)))
    func ownChanges() throws {
      try withWritable { mount, _ in
        let watcher = try MountWatcher(mount.point)
        for number in 0..<50 {
          let (name, other) = (ByteString("file\(number)"), ByteString("renamed\(number)"))
          try (mount.point / name).write("first\n")
          try (mount.point / name).overwrite([UInt8]("second\n".utf8), at: 3)
          try (mount.point / name).rename(to: mount.point / other)
          try (mount.point / other).setMode(0o600)
          let folder = mount.point / ByteString("folder\(number)")
          try folder.makeDirectory()
          try folder.setMode(0o750)
          try folder.setOwner(1, group: 1)
          if number % 2 == 0 { try (mount.point / other).remove() }
        }
        try mount.barrier()
        let report = try mount.report()
        #expect(report.announce.events == 0)
        #expect(report.invalidations.entries == 0)
        #expect(try watcher.receives(.deleted, "renamed48"))
        #expect(watcher.masks("file7").filter { $0.contains(.created) }.count == 1)
        #expect(watcher.masks("folder7").filter { $0.contains(.created) }.count == 1)
      }
    }

    @Test("pages that the mount has written stay cached", .timeLimit(.minutes(1)))
    func ownPages() throws {
      try withWritable { mount, _ in
        let file = mount.point / "new.txt"
        try file.write([UInt8](repeating: 1, count: 64 << 10))
        try mount.barrier()
        let requests = try mount.repeatedRequests { _ = try file.read() }
        #expect(requests == [])
      }
    }

    @Test("a change by another program between two of ours is seen", .timeLimit(.minutes(1)))
    func mixedChanges() throws {
      try withWritable { mount, fixture in
        let (file, below) = (mount.point / "shared", fixture.substitution / "shared")
        try file.write([UInt8](repeating: 0, count: 4096))
        for number in 1..<200 {
          let byte = UInt8(number)
          try file.overwrite([byte], at: number)
          try below.overwrite([byte], at: 4096 - number)
          try file.overwrite([byte], at: 1000 + number)
          if number % 10 != 0 { continue }
          try mount.barrier()
          #expect(try file.read() == below.read(), "after \(number) rounds")
        }
      }
    }

    @Test("what another program takes away and brings back is seen each time", .timeLimit(.minutes(1)))
    func broughtBack() throws {
      try withWritable { mount, fixture in
        let (file, below) = (mount.point / "ours", fixture.substitution / "ours")
        let other = fixture.substitution / "elsewhere"
        try file.write("ours\n")
        for (isSynced, isLookedUp) in [(true, true), (false, true), (true, false), (false, false)] {
          try below.rename(to: other)
          if isSynced { try mount.barrier() }
          // Only its directory is read otherwise.
          if isLookedUp { _ = try? file.status() }
          _ = try mount.point.names()
          try other.rename(to: below)
          try mount.barrier()
          #expect(try file.readText() == "ours\n")
          #expect(try mount.point.names().contains("ours") && !mount.point.names().contains("elsewhere"))
          // Until then the name was another program's.
          try file.rename(to: mount.point / "ours.tmp")
          try (mount.point / "ours.tmp").rename(to: file)
        }
      }
    }

    @Test("a directory's attributes, changed by both ways", .timeLimit(.minutes(1)))
    func directoryAttributes() throws {
      try withWritable { mount, fixture in
        let (folder, below) = (mount.point / "shared", fixture.substitution / "shared")
        try folder.makeDirectory()
        for number in 0..<100 {
          try below.setOwner(UInt32(number), group: 1)
          try folder.setMode(number % 2 == 0 ? 0o700 : 0o755)
          if number % 3 == 0 { try below.setMode(0o711) }
          if number % 10 != 0 { continue }
          try mount.barrier()
          let (seen, expected) = (try folder.status(), try below.status())
          #expect(seen.permissions == expected.permissions && seen.owner == expected.owner, "round \(number)")
        }
        // An opaque directory shows nothing of the layers below.
        try (fixture.substitution / "folder").setAttribute("trusted.overlay.opaque", [UInt8(ascii: "y")])
        try (mount.point / "folder").setMode(0o700)
        try mount.barrier()
        #expect(try (mount.point / "folder").names().sorted() == ["added.txt", "both.txt"])
      }
    }

    @Test("two programs write to one file by both ways at once", .timeLimit(.minutes(1)))
    func concurrentWrites() throws {
      try withWritable { mount, fixture in
        let (file, below) = (mount.point / "shared", fixture.substitution / "shared")
        let size = 64 << 10
        try file.write([UInt8](repeating: 0, count: size))
        let isStopping = Locked(false)
        let writers = try [file, below].enumerated().map { index, path in
          let random = Locked(SplitMix64(seed: UInt64(index)))
          return try LoopThread("writer\(index)", until: isStopping) { _ in
            let (at, byte) = random.withLock {
              (Int($0.next() % UInt64(size)), UInt8(truncatingIfNeeded: $0.next()))
            }
            try path.overwrite([byte], at: at)
          }
        }
        let areBusy = eventually(within: 30) { writers.allSatisfy { $0.iterations > 2000 } }
        isStopping.withLock { $0 = true }
        #expect(eventually(within: 10) { writers.allSatisfy(\.isFinished) })
        #expect(areBusy && writers.allSatisfy { $0.failure == nil })
        try mount.barrier()
        #expect(try file.read() == below.read())
      }
    }

    @Test("names that come and go by both ways at once are as the layer has them", .timeLimit(.minutes(2)))
    func concurrentNames() throws {
      try withWritable { mount, fixture in
        let roots = [mount.point, fixture.substitution]
        let randoms = (0..<2).map { Locked(SplitMix64(seed: UInt64(10 + $0))) }
        // What is wrong after one round is mostly right again after the next.
        for round in 0..<60 {
          let isStopping = Locked(false)
          let writers = try roots.enumerated().map { index, root in
            try LoopThread("names\(index)", until: isStopping) { _ in
              changeNames(of: root, randoms[index].withLock { $0.next() })
            }
          }
          let areBusy = eventually(within: 30) { writers.allSatisfy { $0.iterations > 30 } }
          isStopping.withLock { $0 = true }
          #expect(eventually(within: 10) { writers.allSatisfy(\.isFinished) } && areBusy)
          try mount.barrier()
          for number in 0..<7 {
            let name = ByteString("n\(number)")
            let seen = try? (mount.point / name).read()
            #expect(seen == (try? (fixture.substitution / name).read()), "\(name) after round \(round)")
          }
        }
      }
    }

    private func changeNames(of root: ByteString, _ choice: UInt64) {
      let (name, other) = (ByteString("n\(choice % 7)"), ByteString("n\(choice >> 8 % 7)"))
      // Another thread may have been faster.
      switch choice >> 16 % 3 {
      case 0: try? (root / name).write("\(choice)")
      case 1: try? (root / name).remove()
      default: try? (root / name).rename(to: root / other)
      }
    }

    @Test("the attributes in the reply to a change are not cached", .timeLimit(.minutes(1)))
    func attributesOfChanges() throws {
      try withWritable { mount, _ in
        let file = mount.point / "file"
        try file.write("content")
        // The kernel takes them in any case, also if another program's change has invalidated them in the meantime.
        let unchanged = try attributeRequests(mount) { _ = try file.status() }
        let changed = try attributeRequests(mount) {
          try file.setMode(0o600)
          _ = try file.status()
        }
        #expect(changed == unchanged + 1)
      }
    }

    /// How many GETATTR requests the body causes, with those of the question itself.
    private func attributeRequests(_ mount: Mount, _ body: () throws -> Void) throws -> Int {
      try body()
      let before = try mount.report().requests["GETATTR"] ?? 0
      try body()
      return (try mount.report().requests["GETATTR"] ?? 0) - before
    }
  }
}
