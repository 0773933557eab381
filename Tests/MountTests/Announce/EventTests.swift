import Glibc
import Posix
import TestSupport
import Testing

/// What programs that watch the mount hear of changes beneath it.
extension MountTests {
  @Suite(.enabled(if: Mount.hasControl)) struct AnnounceTests {
    private typealias Mask = InotifyEvent.Mask
    private static let directoryMade: Mask = [.created, .isDirectory]
    private static let directoryGone: Mask = [.deleted, .isDirectory]

    private func withWatcher(
      _ paths: [ByteString] = ["", "folder"], _ body: (Fixture, Mount, MountWatcher) throws -> Void
    ) throws {
      let fixture = try Fixture()
      var setup = fixture.setup
      setup.options = ["announce=on"]
      try withMount(setup) { mount in
        let watcher = try MountWatcher(mount.point, paths)
        try body(fixture, mount, watcher)
        // Whoever looks afterwards finds what the layers have.
        try mount.barrier()
        try expectMerged([fixture.substitution, fixture.main], at: mount.point)
        let announced = try mount.report().announce
        #expect(announced.dropped == 0, "\(announced)")
      }
    }

    @Test("a file that is written, and its content when the event comes", .timeLimit(.minutes(1)))
    func written() throws {
      try withWatcher { fixture, mount, watcher in
        let seen = mount.point / "folder/inner.txt"
        _ = try seen.read()
        for round in 0..<50 {
          try (fixture.main / "folder/inner.txt").write("round \(round)\n")
          #expect(try watcher.hears(.closeWrite, "inner.txt", in: "folder"))
          #expect(try seen.readText() == "round \(round)\n")
          // Events may follow for what was told in part.
          Clock.sleep(0.005)
          #expect(watcher.masks("inner.txt", in: "folder").contains(.modified))
          try watcher.forget()
        }
      }
    }

    @Test("a file that is being written is told to be closed only then", .timeLimit(.minutes(1)))
    func beingWritten() throws {
      try withWatcher { fixture, _, watcher in
        try (fixture.main / "plain.txt").withOpen(O_WRONLY) { file in
          #expect(write(file, "part", 4) == 4)
          #expect(try watcher.hears(.modified, "plain.txt"))
          Clock.sleep(0.1)
          try watcher.hear()
          #expect(!watcher.masks("plain.txt").contains(.closeWrite))
        }
        #expect(try watcher.hears(.closeWrite, "plain.txt"))
      }
    }

    @Test("an override, its change, and its end", .timeLimit(.minutes(1)))
    func override() throws {
      try withWatcher { fixture, mount, watcher in
        let (path, seen) = (fixture.substitution / "folder/inner.txt", mount.point / "folder/inner.txt")
        _ = try seen.read()
        try path.write("over")
        #expect(try watcher.hears(.closeWrite, "inner.txt", in: "folder"))
        #expect(try seen.readText() == "over")
        #expect(Set(watcher.masks("inner.txt", in: "folder")) == [.modified, .closeWrite])
        try watcher.forget()
        try path.replace("over again")
        #expect(
          try watcher.hears(.closeWrite, "inner.txt", in: "folder")
            || watcher.hears(.movedTo, "inner.txt", in: "folder"))
        #expect(try seen.readText() == "over again")
        try watcher.forget()
        try path.remove()
        #expect(try watcher.hears(.closeWrite, "inner.txt", in: "folder"))
        #expect(try seen.readText() == "main's inner\n")
        #expect(watcher.masks("inner.txt", in: "folder") == [.modified, .closeWrite])
      }
    }

    @Test("files, links and folders that come", .timeLimit(.minutes(1)))
    func coming() throws {
      try withWatcher { fixture, mount, watcher in
        try (fixture.main / "folder/new").write("new")
        #expect(try watcher.hears(.closeWrite, "new", in: "folder"))
        #expect(watcher.masks("new", in: "folder").first == .created)
        try (fixture.substitution / "new-link").makeLink(to: "plain.txt")
        #expect(try watcher.hears(.created, "new-link"))
        try (fixture.substitution / "fifo").makeNode(mode: FileKind.fifo.rawValue | 0o600)
        #expect(try watcher.hears(.created, "fifo"))
        try (fixture.main / "new-folder").makeDirectory()
        #expect(try watcher.hears(Self.directoryMade, "new-folder"))
        #expect(try (mount.point / "new-folder").names() == [])
        #expect(try (mount.point / "folder/new").readText() == "new")
        // A link to a file that is there, which nobody writes.
        try (fixture.main / "further").makeHardLink(of: fixture.main / "plain.txt")
        #expect(try watcher.hears(.created, "further"))
      }
    }

    @Test(
      "files and folders that go, known to the kernel or not", .timeLimit(.minutes(1)),
      arguments: [true, false])
    func going(isKnown: Bool) throws {
      try withWatcher(["", "folder", "only"]) { fixture, mount, watcher in
        if isKnown { try mount.look() }
        try (fixture.main / "folder/inner.txt").remove()
        #expect(try watcher.hears(.deleted, "inner.txt", in: "folder"))
        try (fixture.main / "link").remove()
        #expect(try watcher.hears(.deleted, "link"))
        try (fixture.main / "only/deep/file.txt").remove()
        try (fixture.main / "only/deep").removeDirectory()
        #expect(try watcher.hears(Self.directoryGone, "deep", in: "only"))
        try expectErrno(.noSuchFileOrDirectory) { _ = try (mount.point / "folder/inner.txt").status() }
        try expectErrno(.noSuchFileOrDirectory) { _ = try (mount.point / "only/deep").status() }
      }
    }

    @Test("whiteouts of both kinds, and their end", .timeLimit(.minutes(1)))
    func whiteouts() throws {
      try withWatcher { fixture, mount, watcher in
        try mount.look()
        for (mark, name) in [("plain.txt", "plain.txt"), ("folder/.wh.both.txt", "both.txt")] {
          let (folder, path) = (
            name == "plain.txt" ? "" : "folder" as ByteString, fixture.substitution / ByteString(mark)
          )
          if name == "both.txt" { try (fixture.substitution / "folder/both.txt").remove() }
          try watcher.forget()
          if name == "plain.txt" { try path.makeWhiteout() } else { try path.write("") }
          #expect(try watcher.hears(.deleted, ByteString(name), in: folder))
          try path.remove()
          #expect(try watcher.hears(.closeWrite, ByteString(name), in: folder))
        }
        #expect(try watcher.hears(.created, "both.txt", in: "folder"))
      }
    }

    @Test(
      "a renaming has one cookie, and what is known moves along", .timeLimit(.minutes(1)),
      arguments: [true, false])
    func renaming(isKnown: Bool) throws {
      try withWatcher { fixture, mount, watcher in
        if isKnown { try mount.look() }
        let before = try (mount.point / "plain.txt").status().inode
        try (fixture.main / "plain.txt").rename(to: fixture.main / "folder/moved.txt")
        #expect(try watcher.hears(.movedTo, "moved.txt", in: "folder"))
        let moves = watcher.events.filter { !$0.mask.isDisjoint(with: [.movedFrom, .movedTo]) }
        #expect(moves.map(\.name) == ["plain.txt", "moved.txt"])
        #expect(moves.count == 2 && moves.first?.cookie == moves.last?.cookie && moves.first?.cookie != 0)
        #expect(try (mount.point / "folder/moved.txt").status().inode == before)
        try expectErrno(.noSuchFileOrDirectory) { _ = try (mount.point / "plain.txt").status() }
        // Over another one.
        try (fixture.main / "folder/moved.txt").rename(to: fixture.main / "folder/inner.txt")
        #expect(try watcher.hears(.movedTo, "inner.txt", in: "folder"))
        #expect(try (mount.point / "folder/inner.txt").readText() == "main's plain\n")
      }
    }

    @Test("as editors save: a new file is renamed over the old one", .timeLimit(.minutes(1)))
    func saving() throws {
      try withWatcher { fixture, mount, watcher in
        for round in 0..<20 {
          try (fixture.substitution / "replaced.txt").replace("saved \(round)\n")
          #expect(
            try watcher.hears(.movedTo, "replaced.txt") || watcher.hears(.closeWrite, "replaced.txt"))
          #expect(try (mount.point / "replaced.txt").readText() == "saved \(round)\n")
          try watcher.forget()
        }
      }
    }

    @Test("attributes of files and folders", .timeLimit(.minutes(1)))
    func attributes() throws {
      try withWatcher { fixture, mount, watcher in
        try (fixture.main / "plain.txt").setMode(0o600)
        #expect(try watcher.hears(.attributes, "plain.txt"))
        #expect(try (mount.point / "plain.txt").status().permissions == 0o600)
        try (fixture.main / "only").setMode(0o700)
        #expect(try watcher.hears([.attributes, .isDirectory], "only"))
        try (fixture.main / "link").setModified(TimeSpec(seconds: 5, nanoseconds: 0))
        #expect(try watcher.hears(.attributes, "link"))
        try fixture.substitution.setMode(0o750)
        #expect(try watcher.hears([.attributes, .isDirectory], ""))
      }
    }

    @Test("folders that are merged with others, come with content, and go with it", .timeLimit(.minutes(1)))
    func trees() throws {
      try withWatcher(["", "only", "only/deep"]) { fixture, mount, watcher in
        _ = try (mount.point / "only/deep/file.txt").read()
        let aside = try fixture.folder.folder("aside/deep")
        try (aside / "file.txt").write("over")
        try (aside / "added.txt").write("added")
        try (fixture.folder / "aside").rename(to: fixture.substitution / "only")
        #expect(try watcher.hears([.attributes, .isDirectory], "only"))
        #expect(try watcher.hears(.closeWrite, "file.txt", in: "only/deep"))
        #expect(try watcher.hears(.created, "added.txt", in: "only/deep"))
        #expect(try (mount.point / "only/deep/file.txt").readText() == "over")
        try watcher.forget()
        _ = try (mount.point / "only/deep/added.txt").read()
        try (fixture.substitution / "only").rename(to: fixture.folder / "away")
        #expect(try watcher.hears(.closeWrite, "file.txt", in: "only/deep"))
        #expect(try watcher.hears(.deleted, "added.txt", in: "only/deep"))
        #expect(try (mount.point / "only/deep/file.txt").readText() == "deep\n")
      }
    }

    @Test(
      "what a mark hid comes when its folder is moved away, and nothing else does", .timeLimit(.minutes(1)))
    func uncovered() throws {
      try withWatcher(["only/deep"]) { fixture, mount, watcher in
        let part = fixture.substitution / "only/deep"
        try (fixture.main / "only/deep/always.txt").write("always")
        try (fixture.folder / "aside").makeDirectory()
        try (fixture.folder / "aside/.wh.file.txt").write("")
        try (fixture.folder / "aside/.wh.nothing").write("")
        try (fixture.substitution / "only").makeDirectory()
        try (fixture.folder / "aside").rename(to: part)
        #expect(try watcher.hears(.deleted, "file.txt", in: "only/deep"))
        #expect(!(mount.point / "only/deep/file.txt").exists)
        try watcher.forget()
        try part.rename(to: fixture.folder / "aside")
        #expect(try watcher.hears(.created, "file.txt", in: "only/deep"))
        #expect(try (mount.point / "only/deep/file.txt").readText() == "deep\n")
        #expect(watcher.masks("always.txt", in: "only/deep") == [])
        #expect(watcher.masks("nothing", in: "only/deep") == [])
      }
    }

    @Test("what nobody sees, nobody hears", .timeLimit(.minutes(1)))
    func hidden() throws {
      try withWatcher { fixture, _, watcher in
        try (fixture.main / "replaced.txt").write("hidden")
        try (fixture.main / "folder/both.txt").remove()
        try (fixture.substitution / ".wh.nothing").write("")
        try (fixture.main / ".routes").write("hidden, too")
        // What comes after them comes after their events, if they had any.
        try (fixture.main / "last").write("")
        #expect(try watcher.hears(.closeWrite, "last"))
        #expect(watcher.masks("replaced.txt") == [] && watcher.masks("both.txt", in: "folder") == [])
        #expect(watcher.masks("nothing") == [] && watcher.masks(".wh.nothing") == [])
        #expect(watcher.masks(".routes") == [])
        try (fixture.main / ".routes").remove()
      }
    }

    @Test(
      "who watches a file itself hears that it is replaced, and of a change in place", .timeLimit(.minutes(1))
    )
    func fileWatchers() throws {
      try withWatcher(["plain.txt", "folder/inner.txt"]) { fixture, _, watcher in
        try (fixture.main / "plain.txt").write("other")
        #expect(try watcher.hears(.closeWrite, "", in: "plain.txt"))
        try (fixture.substitution / "plain.txt").write("over")
        #expect(try watcher.hears(.deletedSelf, "", in: "plain.txt"))
        try (fixture.main / "folder/inner.txt").remove()
        #expect(try watcher.hears(.deletedSelf, "", in: "folder/inner.txt"))
      }
    }

    @Test("of too many names in a second, the folder tells once", .timeLimit(.minutes(2)))
    func storm() throws {
      try withWatcher { fixture, mount, watcher in
        for file in 0..<5000 { try (fixture.main / "folder" / ByteString("f\(file)")).write("") }
        #expect(try watcher.hears([.attributes, .isDirectory], "folder", within: 10))
        let heard = Set(watcher.events.filter { $0.mask.contains(.created) }.map(\.name)).count
        #expect((500..<5000).contains(heard), "\(heard)")
        #expect(try mount.report().announce.coalesced > 0)
      }
    }

    @Test("a program that was just changed can be started at once", .timeLimit(.minutes(1)))
    func programs() throws {
      try withWatcher { fixture, mount, watcher in
        let program = fixture.substitution / "program"
        try program.write("#!/bin/sh\nexit 0\n")
        try program.setMode(0o755)
        #expect(try watcher.hears(.modified, "program"))
        for _ in 0..<200 {
          try program.overwrite(Array("#!/bin/sh\n".utf8), at: 0)
          let outcome = try Command([mount.point / "program"]).run()
          #expect(outcome.status == 0, "\(outcome.errorText)")
        }
      }
    }
  }
}
