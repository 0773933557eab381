import Glibc
import Posix
import TestSupport
import Testing

/// Names where case does not count; `MutationTests` compares whole trees with a model.
extension MountTests {
  @Suite(.enabled(if: Mount.hasControl)) struct SpellingTests {
    private static let option: ByteString = "case=insensitive"

    private func withBundle(
      _ options: ByteString = "announce=off", _ body: (Fixture, Mount) throws -> Void
    ) throws {
      let fixture = try Fixture(isFilled: false)
      try (fixture.main / "Textures/UI").makeDirectories()
      try (fixture.main / "Textures/UI/Button.dds").write("main")
      try (fixture.main / "Textures/UI/Other.dds").write("other")
      try (fixture.substitution / "textures/ui").makeDirectories()
      try (fixture.substitution / "textures/ui/button.dds").write("substitution")
      try withMount(fixture.setup(Self.option, options)) { try body(fixture, $0) }
    }

    @Test("an override in another spelling, which does not rename MAIN's entry", .timeLimit(.minutes(1)))
    func overriding() throws {
      try withBundle { fixture, mount in
        #expect(try mount.names() == ["Textures"])
        #expect(try (mount.point / "Textures/UI").names() == ["Button.dds", "Other.dds"])
        for path in ["Textures/UI/Button.dds", "textures/ui/button.dds", "TEXTURES/Ui/BUTTON.DDS"]
          as [ByteString]
        {
          #expect(try (mount.point / path).readText() == "substitution", "\(path)")
          let layer = try (mount.point / path).attribute("user.bundlefs.layer")
          #expect(ByteString(layer) == fixture.substitution, "\(path)")
        }
        #expect(try (mount.point / "textures/ui/OTHER.dds").readText() == "other")
        let numbers = try ["Textures", "textures", "TEXTURES"].map { try (mount.point / $0).status().inode }
        #expect(Set(numbers).count == 1)
      }
    }

    @Test("every spelling of a name that comes or goes", .timeLimit(.minutes(1)))
    func coherence() throws {
      try withBundle { fixture, mount in
        let spellings: [ByteString] = ["New.txt", "new.txt", "NEW.TXT", "nEW.txt"]
        let folders: [ByteString] = ["", "Textures", "textures", "TEXTURES"]
        func seen() -> Int {
          folders.flatMap { folder in spellings.map { mount.point / folder / $0 } }.filter(\.exists).count
        }
        for _ in 0..<20 {
          #expect(seen() == 0)
          try (fixture.main / "NEW.txt").write("1")
          try (fixture.substitution / "textures/new.TXT").write("2")
          try mount.barrier()
          #expect(seen() == 16)
          try (fixture.main / "NEW.txt").remove()
          try (fixture.substitution / "textures/new.TXT").remove()
          try mount.barrier()
        }
      }
    }

    @Test("spellings that a dead worker had looked up in vain", .timeLimit(.minutes(2)))
    func deaths() throws {
      try withBundle { fixture, mount in
        for round in 0..<5 {
          let names = ["New\(round)", "new\(round)", "NEW\(round)"].map { ByteString($0) }
          #expect(names.allSatisfy { !(mount.point / "textures" / $0).exists })
          let former = mount.worker
          kill(former, SIGKILL)
          try #require(eventually(within: 20) { ![former, mount.process.pid].contains(mount.worker) })
          try (fixture.main / "Textures" / ByteString("nEw\(round)")).write("there")
          try mount.barrier()
          #expect(names.allSatisfy { (mount.point / "textures" / $0).exists })
        }
      }
    }

    @Test("more missing spellings than are remembered", .timeLimit(.minutes(2)))
    func manyMissing() throws {
      try withBundle { fixture, mount in
        let names = (0..<70_000).map { ByteString("Missing \($0)") }
        #expect(names.allSatisfy { !(mount.point / $0).exists })
        for index in stride(from: 0, to: 70_000, by: 999) {
          try (fixture.main / ByteString("MISSING \(index)")).write("there")
        }
        try mount.barrier()
        for index in stride(from: 0, to: 70_000, by: 999) {
          #expect((mount.point / names[index]).exists, "\(index)")
        }
      }
    }

    @Test("warm accesses cause no request in any spelling", .timeLimit(.minutes(1)))
    func warm() throws {
      try withBundle { _, mount in
        func accessAll() throws {
          for folder in ["Textures/UI", "textures/ui", "TEXTURES/Ui"] as [ByteString] {
            for name in ["Button.dds", "BUTTON.DDS", "button.dds"] as [ByteString] {
              _ = try (mount.point / folder / name).read()
            }
            #expect(!(mount.point / folder / "missing").exists)
            _ = try (mount.point / folder).names()
          }
        }
        try accessAll()
        #expect(try mount.repeatedRequests { try accessAll() } == [])
      }
    }

    @Test("several entries of one name in a layer", .timeLimit(.minutes(1)))
    func collisions() throws {
      try withBundle { fixture, mount in
        try (fixture.main / "Textures/Readme").write("second")
        try (fixture.main / "Textures/README").write("first")
        try mount.barrier()
        let folder = mount.point / "textures"
        #expect(try folder.names() == ["README", "UI"])
        #expect(try (folder / "README").readText() == "first")
        #expect(try (folder / "Readme").readText() == "second")
        #expect(try (folder / "readme").readText() == "first")
        #expect(try mount.command("status").outputText.contains("1 name in several spellings"))
        let differences = try mount.command("diff").outputText
        #expect(differences.contains("has twice  Textures/Readme"), "\(differences)")
        #expect(differences.contains("overrides  Textures/UI/Button.dds"), "\(differences)")
      }
    }

    @Test("whiteouts hide all spellings", .timeLimit(.minutes(1)))
    func whiteouts() throws {
      try withBundle { fixture, mount in
        try (fixture.substitution / "textures/ui/.wh.OTHER.DDS").write("")
        try mount.barrier()
        #expect(try (mount.point / "Textures/UI").names() == ["Button.dds"])
        #expect(!(mount.point / "textures/ui/Other.dds").exists)
        try (fixture.substitution / "textures/ui/.wh.OTHER.DDS").remove()
        try mount.barrier()
        #expect((mount.point / "textures/ui/Other.dds").exists)
      }
    }

    @Test("attributes name the layer's file in its own spelling", .timeLimit(.minutes(1)))
    func attributes() throws {
      try withBundle { fixture, mount in
        for (path, layer, real) in [
          ("TEXTURES/ui/BUTTON.dds", fixture.substitution, "textures/ui/button.dds"),
          ("TEXTURES/ui/OTHER.dds", fixture.main, "Textures/UI/Other.dds"),
          ("TEXTURES/Ui", fixture.substitution, "textures/ui"),
        ] as [(ByteString, ByteString, ByteString)] {
          let attribute = try (mount.point / path).attribute("user.bundlefs.path")
          #expect(ByteString(attribute) == layer / real, "\(path)")
        }
      }
    }

    @Test("an override in another spelling than the top layer's, and its reversion", .timeLimit(.minutes(1)))
    func override() throws {
      try withBundle { fixture, mount in
        let folder = fixture.substitution / "textures/ui"
        let outcome = try mount.command("override", "TEXTURES/UI/OTHER.DDS", "Textures/UI/BUTTON.DDS")
        #expect(
          outcome.outputText == """
            TEXTURES/UI/OTHER.DDS: copied to \(folder)/Other.dds
            Textures/UI/BUTTON.DDS: already in \(folder)/button.dds

            """, "\(outcome.errorText)")
        #expect(try fixture.substitution.names() == ["textures"])
        #expect(try folder.names() == ["Other.dds", "button.dds"])
        try (folder / ".wh.OTHER.DDS").write("")
        #expect(try mount.command("revert", "Textures/ui/other.dds", "--yes").status == 0)
        #expect(try folder.names() == ["button.dds"])
        #expect(try (mount.point / "Textures/UI/other.dds").readText() == "other")
        let refusal = try Command([Binary.underTest(), "override", mount.point, ".ROUTES"]).run()
        #expect(refusal.status == 1 && refusal.errorText.contains("belongs to the mount itself"))
      }
    }

    @Test("an archive, which is replaced", .timeLimit(.minutes(1)))
    func archive() throws {
      let fixture = try Fixture(isFilled: false)
      try (fixture.main / "Textures").makeDirectory()
      try (fixture.main / "Textures/A.dds").write("main")
      let archive = fixture.folder / "mod.zip"
      func pack(_ name: String) throws {
        let bytes = ZipBuilder([
          .init(ByteString("TEXTURES/\(name)"), name, .deflated), .init("TEXTURES/a.DDS", "mod"),
        ]).bytes
        try (fixture.folder / "new.zip").write(bytes)
        try (fixture.folder / "new.zip").rename(to: archive)
      }
      try pack("New.dds")
      var setup = fixture.setup(Self.option)
      setup.substitutions = [archive]
      try withMount(setup) { mount in
        #expect(try (mount.point / "textures/A.dds").readText() == "mod")
        #expect(try (mount.point / "Textures").names() == ["A.dds", "New.dds"])
        #expect(!(mount.point / "textures/OTHER.dds").exists)
        try pack("Other.dds")
        try mount.barrier()
        #expect((mount.point / "textures/OTHER.dds").exists)
        #expect(!(mount.point / "textures/NEW.dds").exists)
        #expect(try (mount.point / "Textures").names() == ["A.dds", "Other.dds"])
      }
    }

    @Test("the control file and resources in any spelling", .timeLimit(.minutes(1)))
    func ownNames() throws {
      try withBundle { _, mount in
        try (mount.point / ".Routes").write("bundlefs:///sync\n")
        for path in ["rsrc:/textures/ui/OTHER.dds", "RSRC:/Textures/UI/other.DDS"] as [ByteString] {
          #expect(try (mount.point / path).readText() == "other", "\(path)")
        }
      }
    }

    @Test("a layer's entries with bundlefs's own names are hidden in any spelling", .timeLimit(.minutes(1)))
    func hiddenNames() throws {
      try withBundle { fixture, mount in
        try (fixture.main / ".Routes").write("main's")
        try (fixture.main / "RSRC:").makeDirectory()
        try (fixture.main / "RSRC:/file").write("main's")
        try mount.barrier()
        #expect(try mount.names() == ["Textures"])
        #expect(try (mount.point / "rsrc:").names() == ["Textures"])
        for path in [".ROUTES", "Rsrc:/file", "rsrc:/Rsrc:/file", "rsrc:/.Routes"] as [ByteString] {
          #expect((try? (mount.point / path).readText()) != "main's", "\(path)")
        }
      }
    }

    @Test("watchers of the mount get the names that listings show", .timeLimit(.minutes(1)))
    func announcing() throws {
      try withBundle("announce=on") { fixture, mount in
        let folder: ByteString = "Textures/UI"
        _ = try (mount.point / folder).names()
        let watcher = try MountWatcher(mount.point, [folder])
        try (fixture.substitution / "textures/ui/button.dds").write("changed")
        #expect(try watcher.receives(.closeWrite, "Button.dds", in: folder))
        try (fixture.substitution / "textures/ui/OTHER.DDS").write("overridden")
        #expect(try watcher.receives(.closeWrite, "Other.dds", in: folder))
        try (fixture.substitution / "textures/ui/OTHER.DDS").remove()
        try mount.barrier()
        #expect(try (mount.point / folder / "other.dds").readText() == "other")
      }
    }

    @Test("a wrong value", .timeLimit(.minutes(1)))
    func usage() throws {
      let fixture = try Fixture()
      let words = [try Binary.underTest(), fixture.main, fixture.point, "-o", "case=Sensitive"]
      let outcome = try Command(words).run()
      #expect(outcome.status == 2)
      #expect(outcome.errorText.contains("case=sensitive or case=insensitive"), "\(outcome.errorText)")
    }
  }
}
