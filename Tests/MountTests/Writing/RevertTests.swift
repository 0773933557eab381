import Posix
import TestSupport
import Testing

/// `bundlefs revert`.
extension MountTests {
  @Suite struct RevertTests {
    @discardableResult
    private static func revert(
      _ mount: Mount, _ paths: ByteString..., asksNot: Bool = true
    ) throws -> Outcome {
      let words: [ByteString] = [try Binary.underTest(), "revert", mount.point] + paths
      return try Command(words + (asksNot ? ["--yes"] : [])).run()
    }

    @Test(
      "overrides, additions, links and directories vanish from the top layer only", .timeLimit(.minutes(1)),
      arguments: [[], ["writable"]] as [[ByteString]])
    func entries(options: [ByteString]) throws {
      let fixture = try Fixture()
      try (fixture.substitution / "link").makeLink(to: "replaced.txt")
      try (fixture.substitution / "folder/deep/deeper").makeDirectories()
      try (fixture.substitution / "folder/deep/deeper/file").write("x")
      var setup = fixture.setup
      setup.options = options
      try withMount(setup) { mount throws in
        #expect(try Self.revert(mount, "link", "folder/deep", mount.point / "replaced.txt").status == 0)
        #expect(try (mount.point / "link").linkTarget() == "plain.txt")
        #expect(try (mount.point / "replaced.txt").readText() == "main's replaced\n")
        #expect(try (mount.point / "folder").names() == ["added.txt", "both.txt", "inner.txt"])
        #expect(try Self.revert(mount, "folder").status == 0)
        #expect(try (mount.point / "folder").names() == ["both.txt", "inner.txt"])
        #expect(try (mount.point / "folder/both.txt").readText() == "main's both\n")
        #expect(try fixture.substitution.names().filter { $0 != ".wh..wh.bundlefs-work" } == [])
      }
      #expect(try fixture.substitution.names() == [])
      #expect(try fixture.main.names() == ["folder", "link", "only", "plain.txt", "replaced.txt"])
    }

    @Test("whiteouts, markers and opaque directories stop hiding what is below", .timeLimit(.minutes(1)))
    func whiteouts() throws {
      let fixture = try Fixture()
      try (fixture.substitution / "plain.txt").makeWhiteout()
      try (fixture.substitution / ".wh.link").write("")
      try (fixture.substitution / ".wh.replaced.txt").write("")
      try (fixture.substitution / "only").makeDirectory()
      try (fixture.substitution / "only").setAttribute("trusted.overlay.opaque", Array("y".utf8))
      try (fixture.substitution / "folder/.wh..wh..opq").write("")
      try withMount(fixture.setup) { mount throws in
        #expect(try (mount.point / "only").names() == [])
        #expect(try (mount.point / "folder").names() == ["added.txt", "both.txt"])
        #expect(
          try Self.revert(mount, "plain.txt", "link", "only", "folder", "replaced.txt").status == 0)
        for (path, text) in ["plain.txt": "main's plain\n", "only/deep/file.txt": "deep\n"] {
          #expect(try (mount.point / ByteString(path)).readText() == text)
        }
        #expect(try (mount.point / "link").linkTarget() == "plain.txt")
        #expect(try (mount.point / "replaced.txt").readText() == "main's replaced\n")
        #expect(try (mount.point / "folder").names() == ["both.txt", "inner.txt"])
      }
      #expect(try fixture.substitution.names() == [])
    }

    @Test("a directory deeper than a path can name vanishes", .timeLimit(.minutes(1)))
    func deep() throws {
      let fixture = try Fixture()
      let script = """
        cd "$1" && for ((i = 0; i < 300; i++)); do mkdir ddddddddddddddd && cd ddddddddddddddd && > f || exit; done
        """
      try Command.shell(script, fixture.substitution).check()
      try withMount(fixture.setup) { mount throws in
        #expect(try Self.revert(mount, "ddddddddddddddd").status == 0)
        #expect(try mount.point.names() == Fixture.rootNames)
      }
      #expect(try fixture.substitution.names() == ["folder", "replaced.txt"])
    }

    @Test("nothing to revert, and paths that are nowhere or outside", .timeLimit(.minutes(1)))
    func nothing() throws {
      let fixture = try Fixture()
      try (fixture.substitution / "linked").makeLink(to: fixture.main)
      try withMount(fixture.setup) { mount throws in
        let nothing = try Self.revert(mount, "plain.txt", "only/deep")
        #expect(nothing.status == 0)
        #expect(
          nothing.outputText == """
            plain.txt: nothing to revert in \(fixture.substitution)
            only/deep: nothing to revert in \(fixture.substitution)

            """)
        let refused: [(ByteString, Int, String)] = [
          ("missing", 1, "missing: No such file or directory"),
          (fixture.main / "plain.txt", 1, "not in \(mount.point)"),
          ("../main/plain.txt", 2, "must not contain '..'"), ("/", 1, "not in"),
          (mount.point, 2, "a PATH below"), ("linked/plain.txt", 1, "No such file"),
          (".routes", 1, "belongs to the mount itself"), (".wh..wh.bundlefs-work", 1, "No such file"),
        ]
        for (path, status, text) in refused {
          let outcome = try Self.revert(mount, path)
          #expect(outcome.status == status && outcome.errorText.contains(text), "\(path): \(outcome)")
        }
        #expect(try Self.revert(mount, "missing", "replaced.txt").status == 1)
        #expect(try (mount.point / "replaced.txt").readText() == "main's replaced\n")
      }
      #expect(try (fixture.main / "plain.txt").readText() == "main's plain\n")
    }

    @Test("a terminal is asked first, and nothing else without --yes", .timeLimit(.minutes(1)))
    func question() throws {
      let fixture = try Fixture()
      try withMount(fixture.setup) { mount throws in
        let refused = try Self.revert(mount, "replaced.txt", asksNot: false)
        #expect(refused.status == 1 && refused.errorText.contains("add '--yes'"), "\(refused)")
        for (answer, status) in [("n", 1), ("", 1), ("y", 0)] {
          #expect((fixture.substitution / "replaced.txt").exists)
          let line = #"script -qec "'$1' revert '$2' replaced.txt folder" /dev/null <<< "$3""#
          let asked = try Command.shell(line, try Binary.underTest(), mount.point, ByteString(answer)).run()
          #expect(asked.status == status)
          #expect(asked.outputText.contains("replaced.txt: a file"), "\(asked.outputText)")
          #expect(asked.outputText.contains("folder: a directory with 2 entries"))
          #expect(asked.outputText.contains("Remove from \(fixture.substitution)?"))
        }
        #expect(try fixture.substitution.names() == [])
      }
    }

    @Test("MAIN, an archive on top and a covered layer are left alone", .timeLimit(.minutes(1)))
    func refusedLayers() throws {
      let fixture = try Fixture()
      let archive = fixture.folder / "layer.zip"
      try archive.write(ZipBuilder([.init("plain.txt", "packed")]).bytes)
      let covering = MountSetup(
        main: fixture.main, point: fixture.substitution, substitutions: [fixture.substitution])
      let setups = [
        (MountSetup(main: fixture.main, point: fixture.point), "there is no layer above MAIN"),
        (MountSetup(main: fixture.main, point: fixture.point, substitutions: [archive]), "is an archive"),
        (covering, "covers this layer"),
      ]
      for (setup, text) in setups {
        try withMount(setup) { mount throws in
          let outcome = try Self.revert(mount, "plain.txt", "folder")
          #expect(outcome.status == 1 && outcome.errorText.contains(text), "\(outcome.errorText)")
        }
      }
      #expect(try fixture.main.names() == Fixture.rootNames)
      #expect(try fixture.substitution.names() == ["folder", "replaced.txt"])
    }
  }
}
