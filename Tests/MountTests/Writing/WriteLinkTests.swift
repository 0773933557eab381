import Glibc
import Posix
import TestSupport
import Testing

/// Files with several hard links in a writable mount: of a layer below each name is a file of its own once it is changed,
/// as in overlayfs; in the upper layer all names are one file.
extension MountTests {
  @Suite struct WriteLinkTests {
    /// What happens between the opening of a file and the first write by its descriptor.
    enum Between: String, CaseIterable {
      case lookup
      case read
      case listing
      case death
      case deathBeforeLookup
    }

    @Test(
      "a descriptor changes the name that it was opened by, whatever name was looked up since",
      .timeLimit(.minutes(1)), arguments: Between.allCases, ["x", "sub/x"])
    func descriptor(between: Between, name: ByteString) throws {
      try withLinked(name) { mount, fixture in
        let (opened, other) = (mount.point / name, mount.point / "y")
        try opened.withFile(O_RDWR) { file in
          let number = try ByteString.status(of: file).inode
          switch between {
          case .lookup: break
          case .read: #expect(try ByteString.text(of: file) == "old\n")
          case .listing: try Command("ls", "-lR", mount.point.text).check()
          case .death, .deathBeforeLookup: break
          }
          if between == .deathBeforeLookup { try killWorker(mount) }
          #expect(try other.readText() == "old\n")
          let status = try other.status()
          #expect(status.inode == number && status.links == 2)
          if between == .death { try killWorker(mount) }
          try ByteString.put("new", in: file, at: 0)
          #expect(try ByteString.text(of: file) == "new\n")
        }
        try expect("new\n", at: name, copied: true, mount, fixture)
        try expect("old\n", at: "y", copied: false, mount, fixture)
        // The other one gets a copy of its own.
        try other.overwrite(Array("two".utf8), at: 0)
        try expect("new\n", at: name, copied: true, mount, fixture)
        try expect("two\n", at: "y", copied: true, mount, fixture)
        #expect(try (fixture.main / name).readText() == "old\n")
        #expect(try (fixture.main / name).status().links == 2)
      }
    }

    @Test(
      "what is written in the layer by either name shows at both", .timeLimit(.minutes(2)),
      arguments: [false, true], ["x", "sub/x"])
    func editedBelow(hasSuccessor: Bool, name: ByteString) throws {
      try withLinked(name) { mount, fixture in
        let paths = [name, "y"]
        try (mount.point / name).withFile(O_RDONLY) { file in
          for path in paths { #expect(try (mount.point / path).readText() == "old\n") }
          if hasSuccessor { try killWorker(mount) }
          for (round, edited) in (paths + paths).enumerated() {
            let text = "edit \(round)\n"
            try (fixture.main / edited).overwrite(Array(text.utf8), at: 0)
            for path in paths {
              #expect(
                try eventually(within: 20) { try (mount.point / path).readText() == text }, "\(path) \(round)"
              )
            }
            #expect(try eventually(within: 20) { try ByteString.text(of: file) == text })
          }
          // The copy is left alone, and the other name goes on.
          try (mount.point / "y").overwrite(Array("Copy".utf8), at: 0)
          try (fixture.main / "y").overwrite(Array("Last".utf8), at: 0)
          #expect(try eventually(within: 20) { try (mount.point / name).readText() == "Last 3\n" })
          #expect(try eventually(within: 20) { try ByteString.text(of: file) == "Last 3\n" })
          #expect(try (mount.point / "y").readText() == "Copy 3\n")
        }
      }
    }

    @Test("links that are made and removed in the layer are counted by all names", .timeLimit(.minutes(1)))
    func linkedBelow() throws {
      try withWritable { mount, fixture in
        let (below, shown) = (fixture.main, mount.point)
        #expect(try (shown / "plain.txt").status().links == 1)
        try (below / "z").makeHardLink(of: below / "plain.txt")
        try (shown / "plain.txt").withFile(O_RDWR) { file in
          #expect(try eventually(within: 20) { try (shown / "plain.txt").status().links == 2 })
          #expect(try eventually(within: 20) { try (shown / "z").status().links == 2 })
          // No directory that is watched reports by which name this was written.
          try (below / "z").overwrite(Array("ZZ".utf8), at: 0)
          #expect(try eventually(within: 20) { try ByteString.text(of: file) == "ZZin's plain\n" })
          try (below / "z").remove()
          #expect(eventually(within: 20) { !(shown / "z").exists })
          #expect(try eventually(within: 20) { try (shown / "plain.txt").status().links == 1 })
          try ByteString.put("new", in: file, at: 0)
        }
        #expect(try (fixture.substitution / "plain.txt").readText() == "newn's plain\n")
        #expect(try (below / "plain.txt").readText() == "ZZin's plain\n")
      }
    }

    @Test("a name that is removed, renamed or linked leaves the other one alone", .timeLimit(.minutes(1)))
    func names() throws {
      let changes = ["rm $1", "mv $1 new", "ln $1 new", "echo else > new && mv new $1"]
      for change in changes {
        try withLinked("x") { mount, fixture in
          try (mount.point / "y").withFile(O_RDWR) { file in
            try Command.shell(#"cd "$2" && cat x y && "# + change, "x", mount.point).check()
            #expect(try ByteString.text(of: file) == "old\n", "\(change)")
            try expect("old\n", at: "y", copied: false, mount, fixture)
            try ByteString.put("new", in: file, at: 0)
          }
          try expect("new\n", at: "y", copied: true, mount, fixture)
          for name in ["x", "new"] as [ByteString] where (mount.point / name).exists {
            #expect(try (mount.point / name).readText() != "new\n", "\(change)")
          }
        }
      }
    }

    @Test("rename(2) of one name to the other replaces it, as in overlayfs", .timeLimit(.minutes(1)))
    func renamedToItself() throws {
      try withLinked("x") { mount, fixture in
        let (name, other) = (mount.point / "x", mount.point / "y")
        #expect(try name.readText() == other.readText())
        try other.withFile(O_RDWR) { replaced in
          #expect(rename(name.text, other.text) == 0)
          try expect("old\n", at: "y", copied: true, mount, fixture)
          #expect(!name.exists)
          // The file that was opened has no name any more.
          try ByteString.put("new", in: replaced, at: 0)
          #expect(try ByteString.text(of: replaced) == "new\n")
          try expect("old\n", at: "y", copied: true, mount, fixture)
        }
        #expect(try (fixture.main / "x").readText() == "old\n")
        #expect(try (fixture.main / "y").readText() == "old\n")
      }
    }

    @Test("RENAME_EXCHANGE of two names gives both a copy", .timeLimit(.minutes(1)))
    func exchanged() throws {
      try withLinked("x") { mount, fixture in
        let (name, other) = (mount.point / "x", mount.point / "y")
        #expect(try name.readText() == other.readText())
        try name.rename(to: other, flags: 2)
        for path in ["x", "y"] as [ByteString] { try expect("old\n", at: path, copied: true, mount, fixture) }
        try name.overwrite(Array("new".utf8), at: 0)
        try expect("new\n", at: "x", copied: true, mount, fixture)
        try expect("old\n", at: "y", copied: true, mount, fixture)
      }
    }

    @Test("a name that is removed in the layer does not turn to another name", .timeLimit(.minutes(1)))
    func removedBelow() throws {
      try withLinked("x") { mount, fixture in
        try (mount.point / "x").withFile(O_RDWR) { file in
          #expect(try (mount.point / "x").status().links == 2)
          try (fixture.main / "x").remove()
          try (fixture.main / "y").rename(to: fixture.main / "z")
          #expect(eventually(within: 20) { (try? (mount.point / "z").status().links) == 1 })
          #expect(try (mount.point / "z").readText() == "old\n")
          // ESTALE, as for every file that nothing in its layer leads to any more.
          _ = try? ByteString.put("new", in: file, at: 0)
        }
        try mount.barrier()
        #expect(try (mount.point / "z").readText() == "old\n")
        #expect(!(fixture.substitution / "z").exists && !(mount.point / "x").exists)
      }
    }

    @Test("watchers receive writes by either name, and no deletion", .timeLimit(.minutes(1)))
    func announced() throws {
      let fixture = try Fixture()
      try (fixture.main / "x").write("old\n")
      try (fixture.main / "y").makeHardLink(of: fixture.main / "x")
      try withWritable("announce=on", fixture: fixture) { mount, _ in
        for name in ["x", "y"] as [ByteString] { _ = try (mount.point / name).read() }
        let watcher = try MountWatcher(mount.point, ["", "x", "y"])
        for round in 0..<20 {
          try (fixture.main / (round % 2 == 0 ? "x" : "y")).write("round \(round)\n")
          #expect(try watcher.receives(.closeWrite, round % 2 == 0 ? "x" : "y"))
          for name in ["x", "y"] as [ByteString] {
            #expect(try eventually(within: 20) { try (mount.point / name).readText() == "round \(round)\n" })
          }
        }
        try mount.barrier()
        try watcher.readEvents()
        let gone = watcher.events.filter { !$0.mask.isDisjoint(with: [.deleted, .deletedSelf, .movedFrom]) }
        #expect(gone.isEmpty)
      }
    }

    @Test("each of a thousand names is one of its own", .timeLimit(.minutes(2)))
    func manyNames() throws {
      let fixture = try Fixture()
      let names = (0..<1000).map { ByteString("name\($0)") }
      try (fixture.main / "many").makeDirectory()
      try (fixture.main / "many/first").write("old\n")
      for name in names { try (fixture.main / "many" / name).makeHardLink(of: fixture.main / "many/first") }
      try withWritable(fixture: fixture) { mount, _ in
        let folder = mount.point / "many"
        try (folder / names[0]).withFile(O_RDWR) { file in
          for name in names { #expect(try (folder / name).status().links == 1001) }
          try ByteString.put("new", in: file, at: 0)
        }
        for (index, name) in names.enumerated() {
          #expect(try (folder / name).readText() == (index == 0 ? "new\n" : "old\n"))
        }
        try (fixture.main / "many/first").write("two\n")
        for name in names.dropFirst() {
          #expect(try eventually(within: 20) { try (folder / name).readText() == "two\n" }, "\(name)")
        }
        try (folder / names[0]).remove()
        #expect(try folder.names().count == 1000)
      }
    }

    @Test("a copy that gets another name is watched by both", .timeLimit(.minutes(1)))
    func linkedCopy() throws {
      try withLinked("x") { mount, fixture in
        #expect(try (mount.point / "x").readText() == "old\n")
        try (mount.point / "x").overwrite(Array("new".utf8), at: 0)
        try (fixture.substitution / "away").makeDirectory()
        try (fixture.substitution / "away/z").makeHardLink(of: fixture.substitution / "x")
        #expect(try eventually(within: 20) { try (mount.point / "x").status().links == 2 })
        #expect(try (mount.point / "away/z").readText() == "new\n")
        try (fixture.substitution / "away/z").overwrite(Array("two".utf8), at: 0)
        for name in ["x", "away/z"] as [ByteString] {
          #expect(try eventually(within: 20) { try (mount.point / name).readText() == "two\n" }, "\(name)")
        }
      }
    }

    @Test("a copy made of a file that had another name is watched, too", .timeLimit(.minutes(1)))
    func soleCopy() throws {
      let fixture = try Fixture()
      try (fixture.substitution / "away").makeDirectory()
      try (fixture.main / "x").write("old\n")
      try (fixture.main / "y").makeHardLink(of: fixture.main / "x")
      try withWritable(fixture: fixture) { mount, _ in
        #expect(try (mount.point / "x").status().links == 2)
        try (fixture.main / "y").remove()
        #expect(try eventually(within: 20) { try (mount.point / "x").status().links == 1 })
        try (mount.point / "x").overwrite(Array("new".utf8), at: 0)
        // In a directory that the mount has not looked up.
        try (fixture.substitution / "away/z").makeHardLink(of: fixture.substitution / "x")
        try mount.barrier()
        #expect(try (mount.point / "x").status().links == 2)
        #expect(try (mount.point / "x").readText() == "new\n")
        try (fixture.substitution / "away/z").overwrite(Array("two".utf8), at: 0)
        #expect(try eventually(within: 20) { try (mount.point / "x").readText() == "two\n" })
      }
    }

    @Test("the names of a file in the upper layer are one file", .timeLimit(.minutes(1)))
    func upper() throws {
      let fixture = try Fixture()
      try (fixture.substitution / "x").write("old\n")
      try (fixture.substitution / "y").makeHardLink(of: fixture.substitution / "x")
      try withWritable(fixture: fixture) { mount, _ in
        try (mount.point / "x").withFile(O_RDWR) { file in
          try (mount.point / "y").withFile(O_RDWR) { other in
            try ByteString.put("new", in: file, at: 0)
            #expect(try ByteString.text(of: other) == "new\n")
            #expect(flock(file, LOCK_EX) == 0 && flock(other, LOCK_EX | LOCK_NB) == -1)
          }
        }
        // A name that is added to a file of a layer below is one of the copy.
        try (mount.point / "linked").makeHardLink(of: mount.point / "plain.txt")
        try (mount.point / "linked").overwrite(Array("new".utf8), at: 0)
        #expect(try (mount.point / "plain.txt").readText() == "newn's plain\n")
      }
    }

    /// Mounts with a file of MAIN that has two names.
    private func withLinked(_ name: ByteString, _ body: (Mount, Fixture) throws -> Void) throws {
      let fixture = try Fixture()
      try (fixture.main / "sub").makeDirectory()
      try (fixture.main / name).write("old\n")
      try (fixture.main / "y").makeHardLink(of: fixture.main / name)
      try withWritable(fixture: fixture, body)
    }

    private func expect(
      _ text: String, at name: ByteString, copied isCopied: Bool, _ mount: Mount, _ fixture: Fixture,
      location: SourceLocation = #_sourceLocation
    ) throws {
      #expect(try (mount.point / name).readText() == text, "\(name)", sourceLocation: location)
      #expect((fixture.substitution / name).exists == isCopied, "\(name)", sourceLocation: location)
      let hasLinks = try eventually(within: 20) {
        try (mount.point / name).status().links == (isCopied ? 1 : 2)
      }
      #expect(hasLinks, "\(name)", sourceLocation: location)
    }

    private func killWorker(_ mount: Mount) throws {
      let former = mount.worker
      try #require(former != mount.process.pid, "there is no holder")
      kill(former, SIGKILL)
      #expect(eventually(within: 20) { mount.worker != former && mount.worker != mount.process.pid })
    }
  }
}
