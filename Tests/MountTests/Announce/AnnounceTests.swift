import Glibc
import Posix
import TestSupport
import Testing

/// The inotify events that watchers of the mount receive for changes in the layers.
extension MountTests {
  @Suite(.enabled(if: Mount.hasControl)) struct AnnounceTests {
    private typealias Mask = InotifyEvent.Mask
    private static let directoryCreated: Mask = [.created, .isDirectory]
    private static let directoryDeleted: Mask = [.deleted, .isDirectory]

    private func withWatcher(
      _ paths: [ByteString] = ["", "folder"], _ body: (Fixture, Mount, MountWatcher) throws -> Void
    ) throws {
      let fixture = try Fixture()
      try withMount(fixture.setup("announce=on")) { mount in
        let watcher = try MountWatcher(mount.point, paths)
        try body(fixture, mount, watcher)
        // Announcing must not alter what the mount shows.
        try mount.barrier()
        try expectMerged([fixture.substitution, fixture.main], at: mount.point)
        let announced = try mount.report().announce
        #expect(announced.dropped == 0, "\(announced)")
      }
    }

    @Test("a written file, whose new content is visible when the event arrives", .timeLimit(.minutes(1)))
    func written() throws {
      try withWatcher { fixture, mount, watcher in
        let seen = mount.point / "folder/inner.txt"
        _ = try seen.read()
        for round in 0..<50 {
          try (fixture.main / "folder/inner.txt").write("round \(round)\n")
          #expect(try watcher.receives(.closeWrite, "inner.txt", in: "folder"))
          #expect(try seen.readText() == "round \(round)\n")
          // More events may follow for a write announced in part.
          Clock.sleep(0.005)
          #expect(watcher.masks("inner.txt", in: "folder").contains(.modified))
          try watcher.discardEvents()
        }
      }
    }

    @Test("what a change of the layers does to names", .timeLimit(.minutes(1)))
    func layers() throws {
      try withWatcher { fixture, mount, watcher in
        let mod = try fixture.folder.folder("mod")
        for (path, text) in [
          ("plain.txt", "1"), ("new", "2"), ("folder/inner.txt", "3"), ("folder/link", "4"),
        ] {
          try (mod / ByteString(path)).parent.makeDirectories()
          try (mod / ByteString(path)).write(text)
        }
        try (mod / ".wh.only").write("")
        _ = try (mount.point / "only").names()
        for _ in 0..<3 {
          try mount.setLayers([mod, fixture.substitution])
          #expect(try watcher.receives(.created, "new"))
          #expect(try watcher.receives(.closeWrite, "plain.txt"))
          #expect(try watcher.receives(.closeWrite, "inner.txt", in: "folder"))
          #expect(try watcher.receives(.created, "link", in: "folder"))
          #expect(try watcher.receives(Self.directoryDeleted, "only"))
          #expect(watcher.masks("replaced.txt").isEmpty && watcher.masks("both.txt", in: "folder").isEmpty)
          try watcher.discardEvents()
          try mount.setLayers([fixture.substitution])
          #expect(try watcher.receives(.deleted, "new"))
          #expect(try watcher.receives(.closeWrite, "plain.txt"))
          #expect(try watcher.receives(.closeWrite, "inner.txt", in: "folder"))
          #expect(try watcher.receives(.deleted, "link", in: "folder"))
          #expect(try watcher.receives(Self.directoryCreated, "only"))
          try watcher.discardEvents()
        }
      }
    }

    @Test("IN_CLOSE_WRITE comes only after the writer has closed the file", .timeLimit(.minutes(1)))
    func beingWritten() throws {
      try withWatcher { fixture, _, watcher in
        try (fixture.main / "plain.txt").withOpen(O_WRONLY) { file in
          #expect(write(file, "part", 4) == 4)
          #expect(try watcher.receives(.modified, "plain.txt"))
          Clock.sleep(0.1)
          try watcher.readEvents()
          #expect(!watcher.masks("plain.txt").contains(.closeWrite))
        }
        #expect(try watcher.receives(.closeWrite, "plain.txt"))
      }
    }

    @Test("an override that appears, changes and vanishes", .timeLimit(.minutes(1)))
    func override() throws {
      try withWatcher { fixture, mount, watcher in
        let (path, seen) = (fixture.substitution / "folder/inner.txt", mount.point / "folder/inner.txt")
        _ = try seen.read()
        try path.write("over")
        #expect(try watcher.receives(.closeWrite, "inner.txt", in: "folder"))
        #expect(try seen.readText() == "over")
        #expect(Set(watcher.masks("inner.txt", in: "folder")) == [.modified, .closeWrite])
        try watcher.discardEvents()
        try path.replace("over again")
        #expect(
          try watcher.receives(.closeWrite, "inner.txt", in: "folder")
            || watcher.receives(.movedTo, "inner.txt", in: "folder"))
        #expect(try seen.readText() == "over again")
        try watcher.discardEvents()
        try path.remove()
        #expect(try watcher.receives(.closeWrite, "inner.txt", in: "folder"))
        #expect(try seen.readText() == "main's inner\n")
        #expect(watcher.masks("inner.txt", in: "folder") == [.modified, .closeWrite])
      }
    }

    @Test("files, links and folders that appear", .timeLimit(.minutes(1)))
    func created() throws {
      try withWatcher { fixture, mount, watcher in
        try (fixture.main / "folder/new").write("new")
        #expect(try watcher.receives(.closeWrite, "new", in: "folder"))
        #expect(watcher.masks("new", in: "folder").first == .created)
        try (fixture.substitution / "new-link").makeLink(to: "plain.txt")
        #expect(try watcher.receives(.created, "new-link"))
        try (fixture.substitution / "fifo").makeNode(mode: FileKind.fifo.rawValue | 0o600)
        #expect(try watcher.receives(.created, "fifo"))
        try (fixture.main / "new-folder").makeDirectory()
        #expect(try watcher.receives(Self.directoryCreated, "new-folder"))
        #expect(try (mount.point / "new-folder").names() == [])
        #expect(try (mount.point / "folder/new").readText() == "new")
        // A new hard link to a file that is not written.
        try (fixture.main / "further").makeHardLink(of: fixture.main / "plain.txt")
        #expect(try watcher.receives(.created, "further"))
      }
    }

    @Test(
      "files and folders that vanish, cached by the kernel or not", .timeLimit(.minutes(1)),
      arguments: [true, false])
    func deleted(isCached: Bool) throws {
      try withWatcher(["", "folder", "only"]) { fixture, mount, watcher in
        if isCached { try mount.warmCaches() }
        try (fixture.main / "folder/inner.txt").remove()
        #expect(try watcher.receives(.deleted, "inner.txt", in: "folder"))
        try (fixture.main / "link").remove()
        #expect(try watcher.receives(.deleted, "link"))
        try (fixture.main / "only/deep/file.txt").remove()
        try (fixture.main / "only/deep").removeDirectory()
        #expect(try watcher.receives(Self.directoryDeleted, "deep", in: "only"))
        try expectErrno(.noSuchFileOrDirectory) { _ = try (mount.point / "folder/inner.txt").status() }
        try expectErrno(.noSuchFileOrDirectory) { _ = try (mount.point / "only/deep").status() }
      }
    }

    @Test("whiteouts of both formats appear and vanish", .timeLimit(.minutes(1)))
    func whiteouts() throws {
      try withWatcher { fixture, mount, watcher in
        try mount.warmCaches()
        for (whiteout, name) in [("plain.txt", "plain.txt"), ("folder/.wh.both.txt", "both.txt")] {
          let (folder, path) = (
            name == "plain.txt" ? "" : "folder" as ByteString, fixture.substitution / ByteString(whiteout)
          )
          if name == "both.txt" { try (fixture.substitution / "folder/both.txt").remove() }
          try watcher.discardEvents()
          if name == "plain.txt" { try path.makeWhiteout() } else { try path.write("") }
          #expect(try watcher.receives(.deleted, ByteString(name), in: folder))
          try path.remove()
          #expect(try watcher.receives(.closeWrite, ByteString(name), in: folder))
        }
        #expect(try watcher.receives(.created, "both.txt", in: "folder"))
      }
    }

    @Test(
      "both events of a rename have one cookie, and the inode number stays", .timeLimit(.minutes(1)),
      arguments: [true, false])
    func rename(isCached: Bool) throws {
      try withWatcher { fixture, mount, watcher in
        if isCached { try mount.warmCaches() }
        let before = try (mount.point / "plain.txt").status().inode
        try (fixture.main / "plain.txt").rename(to: fixture.main / "folder/moved.txt")
        #expect(try watcher.receives(.movedTo, "moved.txt", in: "folder"))
        let moves = watcher.events.filter { !$0.mask.isDisjoint(with: [.movedFrom, .movedTo]) }
        #expect(moves.map(\.name) == ["plain.txt", "moved.txt"])
        #expect(moves.count == 2 && moves.first?.cookie == moves.last?.cookie && moves.first?.cookie != 0)
        #expect(try (mount.point / "folder/moved.txt").status().inode == before)
        try expectErrno(.noSuchFileOrDirectory) { _ = try (mount.point / "plain.txt").status() }
        // Replacing an existing file.
        try (fixture.main / "folder/moved.txt").rename(to: fixture.main / "folder/inner.txt")
        #expect(try watcher.receives(.movedTo, "inner.txt", in: "folder"))
        #expect(try (mount.point / "folder/inner.txt").readText() == "main's plain\n")
      }
    }

    @Test("editors save by renaming a new file over the old one", .timeLimit(.minutes(1)))
    func saving() throws {
      try withWatcher { fixture, mount, watcher in
        for round in 0..<20 {
          try (fixture.substitution / "replaced.txt").replace("saved \(round)\n")
          #expect(
            try watcher.receives(.movedTo, "replaced.txt")
              || watcher.receives(.closeWrite, "replaced.txt"))
          #expect(try (mount.point / "replaced.txt").readText() == "saved \(round)\n")
          try watcher.discardEvents()
        }
      }
    }

    @Test("attribute changes of files and folders", .timeLimit(.minutes(1)))
    func attributes() throws {
      try withWatcher { fixture, mount, watcher in
        try (fixture.main / "plain.txt").setMode(0o600)
        #expect(try watcher.receives(.attributes, "plain.txt"))
        #expect(try (mount.point / "plain.txt").status().permissions == 0o600)
        try (fixture.main / "only").setMode(0o700)
        #expect(try watcher.receives([.attributes, .isDirectory], "only"))
        try (fixture.main / "link").setModified(TimeSpec(seconds: 5, nanoseconds: 0))
        #expect(try watcher.receives(.attributes, "link"))
        try fixture.substitution.setMode(0o750)
        #expect(try watcher.receives([.attributes, .isDirectory], ""))
      }
    }

    @Test("a moved tree that merges with other folders, and is moved away", .timeLimit(.minutes(1)))
    func trees() throws {
      try withWatcher(["", "only", "only/deep"]) { fixture, mount, watcher in
        _ = try (mount.point / "only/deep/file.txt").read()
        let aside = try fixture.folder.folder("aside/deep")
        try (aside / "file.txt").write("over")
        try (aside / "added.txt").write("added")
        try (fixture.folder / "aside").rename(to: fixture.substitution / "only")
        #expect(try watcher.receives([.attributes, .isDirectory], "only"))
        #expect(try watcher.receives(.closeWrite, "file.txt", in: "only/deep"))
        #expect(try watcher.receives(.created, "added.txt", in: "only/deep"))
        #expect(try (mount.point / "only/deep/file.txt").readText() == "over")
        try watcher.discardEvents()
        _ = try (mount.point / "only/deep/added.txt").read()
        try (fixture.substitution / "only").rename(to: fixture.folder / "away")
        #expect(try watcher.receives(.closeWrite, "file.txt", in: "only/deep"))
        #expect(try watcher.receives(.deleted, "added.txt", in: "only/deep"))
        #expect(try (mount.point / "only/deep/file.txt").readText() == "deep\n")
      }
    }

    @Test(
      "what takes a whiteout's place is new, and one that hid nothing vanishes unseen",
      .timeLimit(.minutes(1)))
    func replacedWhiteouts() throws {
      try withWatcher { fixture, mount, watcher in
        for isListed in [true, false] {
          try (fixture.substitution / "never").makeWhiteout()
          try (fixture.substitution / "plain.txt").makeWhiteout()
          // Changes are announced in their order, so both whiteouts are known then.
          #expect(try watcher.receives(.deleted, "plain.txt"))
          if isListed { #expect(try !mount.names().contains("plain.txt")) }
          try mount.barrier()
          try watcher.discardEvents()
          try (fixture.substitution / "never").remove()
          try (fixture.substitution / "plain.txt").remove()
          try (fixture.substitution / "plain.txt").write("instead\n")
          #expect(try watcher.receives(.closeWrite, "plain.txt"))
          #expect(watcher.masks("plain.txt").first == .created, "\(watcher.events)")
          #expect(watcher.masks("never") == [])
          try (fixture.substitution / "plain.txt").remove()
          #expect(try watcher.receives(.closeWrite, "plain.txt"))
          try watcher.discardEvents()
        }
      }
    }

    @Test(
      "moving a folder away uncovers what its whiteouts hid, and nothing else", .timeLimit(.minutes(1)))
    func uncovered() throws {
      try withWatcher(["only/deep"]) { fixture, mount, watcher in
        let part = fixture.substitution / "only/deep"
        try (fixture.main / "only/deep/always.txt").write("always")
        try (fixture.folder / "aside").makeDirectory()
        try (fixture.folder / "aside/.wh.file.txt").write("")
        try (fixture.folder / "aside/.wh.nothing").write("")
        try (fixture.substitution / "only").makeDirectory()
        try (fixture.folder / "aside").rename(to: part)
        #expect(try watcher.receives(.deleted, "file.txt", in: "only/deep"))
        #expect(!(mount.point / "only/deep/file.txt").exists)
        try watcher.discardEvents()
        try part.rename(to: fixture.folder / "aside")
        #expect(try watcher.receives(.created, "file.txt", in: "only/deep"))
        #expect(try (mount.point / "only/deep/file.txt").readText() == "deep\n")
        #expect(watcher.masks("always.txt", in: "only/deep") == [])
        #expect(watcher.masks("nothing", in: "only/deep") == [])
      }
    }

    @Test("hidden changes cause no event", .timeLimit(.minutes(1)))
    func hiddenChanges() throws {
      try withWatcher { fixture, _, watcher in
        try (fixture.main / "replaced.txt").write("hidden")
        try (fixture.main / "folder/both.txt").remove()
        try (fixture.substitution / ".wh.nothing").write("")
        try (fixture.main / ".routes").write("hidden, too")
        // The events of a later change come after theirs.
        try (fixture.main / "last").write("")
        #expect(try watcher.receives(.closeWrite, "last"))
        #expect(watcher.masks("replaced.txt") == [] && watcher.masks("both.txt", in: "folder") == [])
        #expect(watcher.masks("nothing") == [] && watcher.masks(".wh.nothing") == [])
        #expect(watcher.masks(".routes") == [])
        try (fixture.main / ".routes").remove()
      }
    }

    @Test(
      "a watch on a file itself reports replacement and a change in place", .timeLimit(.minutes(1))
    )
    func fileWatchers() throws {
      try withWatcher(["plain.txt", "folder/inner.txt"]) { fixture, _, watcher in
        try (fixture.main / "plain.txt").write("other")
        #expect(try watcher.receives(.closeWrite, "", in: "plain.txt"))
        try (fixture.substitution / "plain.txt").write("over")
        #expect(try watcher.receives(.deletedSelf, "", in: "plain.txt"))
        try (fixture.main / "folder/inner.txt").remove()
        #expect(try watcher.receives(.deletedSelf, "", in: "folder/inner.txt"))
      }
    }

    @Test("too many names per second are reported as one event of the folder", .timeLimit(.minutes(2)))
    func eventRateLimit() throws {
      try withWatcher { fixture, mount, watcher in
        for file in 0..<5000 { try (fixture.main / "folder" / ByteString("f\(file)")).write("") }
        #expect(try watcher.receives([.attributes, .isDirectory], "folder", within: 10))
        let announced = Set(watcher.events.filter { $0.mask.contains(.created) }.map(\.name)).count
        #expect((500..<5000).contains(announced), "\(announced)")
        #expect(try mount.report().announce.coalesced > 0)
      }
    }

    @Test("a program can be executed right after a change", .timeLimit(.minutes(1)))
    func programs() throws {
      try withWatcher { fixture, mount, watcher in
        let program = fixture.substitution / "program"
        try program.write("#!/bin/sh\nexit 0\n")
        try program.setMode(0o755)
        #expect(try watcher.receives(.modified, "program"))
        for _ in 0..<200 {
          try program.overwrite(Array("#!/bin/sh\n".utf8), at: 0)
          let outcome = try Command([mount.point / "program"]).run()
          #expect(outcome.status == 0, "\(outcome.errorText)")
        }
      }
    }

    @Test("a program that has just become executable can be executed", .timeLimit(.minutes(2)))
    func newPrograms() throws {
      try withWatcher { fixture, mount, _ in
        let program = fixture.substitution / "program"
        try program.write("")
        try mount.barrier()
        // Started again and again while the change is announced; at first the kernel may have the former mode.
        let script = #"""
          import collections, os, sys, time
          layer, seen = sys.argv[1:]
          outcomes = collections.Counter()
          for number in range(2500):
              os.chmod(layer, 0o644)
              with open(layer, "w") as file:
                  file.write("#!/bin/true\n#%d\n" % number)
              open(seen).read()
              os.chmod(layer, 0o755)
              end = time.monotonic() + 0.004
              while time.monotonic() < end:
                  try:
                      os.waitpid(os.posix_spawn(seen, [seen], {}), 0)
                      outcomes["started"] += 1
                  except PermissionError:
                      pass
                  except OSError as error:
                      outcomes[error.strerror] += 1
          # The announcer may look while the file is empty, and be delayed before it closes it: then it is no program yet.
          if outcomes["Text file busy"] <= 3: del outcomes["Text file busy"]
          print(*outcomes)
          """#
        let outcome = try Command(["python3", "-c", ByteString(script), program, mount.point / "program"])
          .check(timeout: 100)
        #expect(outcome.outputText == "started\n")
      }
    }
  }
}
