import Posix
import TestSupport
import Testing

/// `bundlefs override`.
extension MountTests {
  @Suite struct OverrideTests {
    @discardableResult
    private static func override(_ mount: Mount, _ paths: ByteString...) throws -> Outcome {
      try Command([try Binary.underTest(), "override", mount.point] + paths).run()
    }

    @Test(
      "a file is copied with all its attributes and directories, and edits of it show",
      .timeLimit(.minutes(1)), arguments: [[], ["writable"], ["ro"]] as [[ByteString]])
    func file(options: [ByteString]) throws {
      let fixture = try Fixture()
      let source = fixture.main / "only/deep/file.txt"
      try source.setOwner(1234, group: 2345)
      try source.setMode(0o6751)
      try source.setAttribute("user.colour", [1, 2, 3])
      try source.setModified(TimeSpec(seconds: 1_000_000_000, nanoseconds: 123_456_789))
      try (fixture.main / "only").setMode(0o2711)
      try (fixture.main / "only").setAttribute("user.shape", [4])
      try (fixture.main / "only").setModified(TimeSpec(seconds: 900_000_000, nanoseconds: 7))
      var setup = fixture.setup
      setup.options = options
      try withMount(setup) { mount throws in
        let outcome = try Self.override(mount, "only/deep/file.txt")
        let copy = fixture.substitution / "only/deep/file.txt"
        #expect(outcome.outputText == "only/deep/file.txt: copied to \(copy)\n", "\(outcome.errorText)")
        let status = try copy.status()
        #expect(status.owner == 1234 && status.group == 2345 && status.permissions == 0o6751)
        #expect(status.modified == TimeSpec(seconds: 1_000_000_000, nanoseconds: 123_456_789))
        #expect(try copy.attributeNames() == ["user.colour"])
        #expect(try copy.readText() == "deep\n")
        let parent = try (fixture.substitution / "only").status()
        #expect(parent.permissions == 0o2711)
        #expect(parent.modified == TimeSpec(seconds: 900_000_000, nanoseconds: 7))
        #expect(try (fixture.substitution / "only").attributeNames() == ["user.shape"])

        try copy.replace("edited\n")
        let isShown = try eventually(within: 20) {
          try (mount.point / "only/deep/file.txt").readText() == "edited\n"
        }
        #expect(isShown)
      }
    }

    @Test(
      "a directory is copied with all that is seen in it, and what is there is kept", .timeLimit(.minutes(1)))
    func directory() throws {
      let fixture = try Fixture()
      let second = try fixture.folder.folder("second")
      try (second / "folder/below").makeDirectories()
      try (second / "folder/below/x").write("second's x")
      try (second / "folder/both.txt").write("second's both")
      try (second / "folder/pipe").makeNode(mode: FileKind.fifo.rawValue | 0o640)
      try (second / "folder/to").makeLink(to: "../plain.txt")
      try (fixture.main / "folder/hidden.txt").write("hidden")
      try (fixture.substitution / "folder/hidden.txt").makeWhiteout()
      var setup = fixture.setup
      setup.substitutions.append(second)
      try withMount(setup) { mount throws in
        let outcome = try Self.override(mount, "folder")
        #expect(outcome.status == 0, "\(outcome.errorText)")
        #expect(outcome.outputText.contains("folder: copied 4 files"))
        #expect(outcome.outputText.contains("had 2 already"))
        let copy = fixture.substitution / "folder"
        #expect(
          try copy.names() == [
            "added.txt", "below", "both.txt", "hidden.txt", "inner.txt", "pipe", "to",
          ])
        #expect(try (copy / "both.txt").readText() == "substitution's both\n")
        #expect(try (copy / "below/x").readText() == "second's x")
        #expect(try (copy / "inner.txt").readText() == "main's inner\n")
        #expect(try (copy / "to").linkTarget() == "../plain.txt")
        #expect(try (copy / "pipe").status().kind == .fifo)
        // Still a whiteout: it is not seen.
        #expect(try (copy / "hidden.txt").status().kind == .characterDevice)
        #expect(try Self.override(mount, "folder").outputText.contains("copied 0 files"))
      }
      #expect(try fixture.substitution.names() == ["folder", "replaced.txt"])
    }

    @Test("the whole mount is copied, but not the mount's own entries", .timeLimit(.minutes(1)))
    func root() throws {
      let fixture = try Fixture()
      try withMount(fixture.setup) { mount throws in
        let outcome = try Self.override(mount, mount.point)
        #expect(outcome.status == 0, "\(outcome.errorText)")
        #expect(try fixture.substitution.names() == Fixture.rootNames)
        for (path, text) in Fixture.content {
          #expect(try (fixture.substitution / path).readText() == text)
        }
      }
    }

    @Test(
      "entries of an archive, and of a mount over MAIN, are copied", .timeLimit(.minutes(1)),
      arguments: [false, true])
    func otherSources(isArchive: Bool) throws {
      let fixture = try Fixture()
      let archive = fixture.folder / "main.zip"
      try archive.write(ZipBuilder([.init("folder/packed.txt", "packed"), .init("plain.txt", "z")]).bytes)
      let setup = MountSetup(
        main: isArchive ? archive : fixture.main, point: isArchive ? fixture.point : fixture.main,
        substitutions: [fixture.substitution])
      let path: ByteString = isArchive ? "folder/packed.txt" : "folder/inner.txt"
      try withMount(setup) { mount throws in
        let outcome = try Self.override(mount, path, "plain.txt")
        #expect(outcome.status == 0, "\(outcome.errorText)")
        #expect(try (fixture.substitution / path).readText() == (isArchive ? "packed" : "main's inner\n"))
        #expect(try (mount.point / path).attribute("user.bundlefs.layer") == fixture.substitution.bytes)
      }
    }

    @Test("the last link of a path is copied, and others are not followed", .timeLimit(.minutes(1)))
    func links() throws {
      let fixture = try Fixture()
      try (fixture.main / "way").makeLink(to: "only")
      try (fixture.main / "out").makeLink(to: fixture.main)
      try withMount(fixture.setup) { mount throws in
        #expect(try Self.override(mount, "link", mount.point / "way").status == 0)
        #expect(try (fixture.substitution / "link").linkTarget() == "plain.txt")
        #expect(try (fixture.substitution / "way").linkTarget() == "only")
        // Relative to the working directory.
        let here = Command(
          [try Binary.underTest(), "override", ".", "out"], directory: mount.point)
        #expect(try here.run().status == 0)
        #expect(try (fixture.substitution / "out").linkTarget() == fixture.main)
        for path in ["way/deep/file.txt", "out/plain.txt"] as [ByteString] {
          let outcome = try Self.override(mount, path)
          #expect(outcome.status == 1 && outcome.errorText.contains("a symbolic link"), "\(outcome)")
        }
        #expect(!(fixture.substitution / "only").exists)
      }
    }

    @Test("what cannot be copied is named, and the rest is copied", .timeLimit(.minutes(1)))
    func refused() throws {
      let fixture = try Fixture()
      try withMount(fixture.setup) { mount throws in
        let refused: [(ByteString, Int, String)] = [
          ("missing", 1, "missing: No such file or directory"), ("plain.txt/x", 1, "Not a directory"),
          (fixture.main / "plain.txt", 1, "not in \(mount.point)"),
          ("..", 2, "must not contain '..'"),
          ("folder/../plain.txt", 2, "must not contain '..'"),
          (".routes", 1, "belongs to the mount itself"),
          ("rsrc:/plain.txt", 1, "belongs to the mount itself"),
        ]
        for (path, status, text) in refused {
          let outcome = try Self.override(mount, path)
          #expect(outcome.status == status && outcome.errorText.contains(text), "\(path): \(outcome)")
        }
        let mixed = try Self.override(mount, "missing", "plain.txt")
        #expect(mixed.status == 1)
        #expect(try (fixture.substitution / "plain.txt").readText() == "main's plain\n")
        #expect(try Command([try Binary.underTest(), "override", mount.point]).run().status == 2)
      }
    }

    @Test(
      "without privileges, directories that nothing may be added to are copied and reverted",
      .timeLimit(.minutes(1)))
    func unprivileged() throws {
      let fixture = try Fixture()
      for path in ["only/deep", "only"] as [ByteString] { try (fixture.main / path).setMode(0o555) }
      try withOpenDevice {
        let setup = try UnprivilegedTests().userSetup(fixture)
        let program = try #require(setup.binary)
        try withMount(setup) { mount throws in
          for (command, flags) in [("override", []), ("revert", ["--yes"])] as [(ByteString, [ByteString])] {
            let words = [program, command, mount.point, "only"] + flags
            let outcome = try Command(words).asUser(UnprivilegedTests.nobody).run()
            #expect(outcome.status == 0 && outcome.errorText == "", "\(outcome.errorText)")
            if command == "override" {
              let copy = fixture.substitution / "only/deep"
              #expect(try (copy / "file.txt").readText() == "deep\n")
              #expect(try copy.status().permissions == 0o555)
              #expect(try copy.status().owner == UnprivilegedTests.nobody)
            }
          }
          #expect(try fixture.substitution.names() == ["folder", "replaced.txt"])
        }
      }
    }

    @Test("a full layer keeps no half of a file", .timeLimit(.minutes(1)))
    func full() throws {
      let fixture = try Fixture()
      try (fixture.main / "large").write([UInt8](repeating: 7, count: 3 << 20))
      let small = try fixture.folder.folder("small")
      try Command(["mount", "-t", "tmpfs", "-o", "size=1m", "small", small]).check()
      defer { _ = try? Command(["umount", "-l", small]).run() }
      var setup = fixture.setup
      setup.substitutions = [small]
      try withMount(setup) { mount throws in
        let outcome = try Self.override(mount, "large", "plain.txt")
        #expect(outcome.status == 1 && outcome.errorText.contains("large: No space left"), "\(outcome)")
        #expect(try small.names() == ["plain.txt"])
        #expect(try (mount.point / "large").status().size == 3 << 20)
      }
    }
  }
}
