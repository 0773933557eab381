import Glibc
import Posix
import TestSupport
import Testing

/// Layers on file systems that fold names, in mounts that do not.
extension MountTests {
  @Suite(.enabled(if: Mount.hasControl)) struct FoldedLayerTests {
    private static let option: ByteString = "case=insensitive"

    /// The body receives the fixture, a mount point that shows MAIN without case, and a second mount point.
    private func withFolded(_ body: (Fixture, Mount, ByteString) throws -> Void) throws {
      let fixture = try Fixture(isFilled: false)
      try (fixture.main / "Data").makeDirectory()
      try (fixture.main / "Data/x.ini").write("old")
      try (fixture.substitution / "DATA").makeDirectory()
      try (fixture.substitution / "DATA/X.INI").write("new")
      let point = try fixture.folder.folder("upper")
      try withMount(MountSetup(main: fixture.main, point: fixture.point, substitutions: []).with(Self.option))
      {
        try body(fixture, $0, point)
      }
    }

    @Test(
      "a layer that folds names is refused unless an option says what to do", .timeLimit(.minutes(1)),
      arguments: [true, false])
    func mounting(isMain: Bool) throws {
      try withFolded { fixture, folded, point in
        let layers = isMain ? [fixture.substitution, folded.point] : [folded.point, fixture.substitution]
        let setup = MountSetup(main: layers[1], point: point, substitutions: [layers[0]])
        let changes = "writable=" + (fixture.folder / "changes")
        for options in [[], [changes]] as [[ByteString]] {
          let outcome = try setup.with(options).command(foreground: false).run()
          let role = isMain ? "MAIN" : "substitution"
          #expect(outcome.status == 1 && outcome.errorText.contains("\(role) \(folded.point)"))
          #expect(outcome.errorText.contains("add 'case=insensitive'"), "\(outcome.errorText)")
          #expect(try MountTable.entry(at: point) == nil)
        }
        try withMount(setup.with(Self.option)) { mount in
          let text = try (mount.point / "data/x.Ini").readText()
          #expect(text == (isMain ? "new" : "old"))
          #expect(try mount.names().count == 1)
        }
        try withMount(setup.with("case=sensitive", changes)) { mount in
          let text = try (mount.point / "Data/x.ini").readText()
          #expect(text == "old")
        }
      }
    }

    @Test("a mount that folds names is refused even if it is empty", .timeLimit(.minutes(1)))
    func emptyMount() throws {
      let fixture = try Fixture(isFilled: false)
      let point = try fixture.folder.folder("upper")
      for isFolded in [true, false] {
        let options: [ByteString] = isFolded ? [Self.option] : []
        try withMount(MountSetup(main: fixture.main, point: fixture.point).with(options)) { lower in
          let words = [try Binary.underTest(), "layers", point, "add", lower.point]
          let outcome = try withMount(MountSetup(main: fixture.substitution, point: point)) { _ in
            try Command(words).run()
          }
          #expect((outcome.status == 0) == !isFolded, "\(outcome.errorText)")
        }
      }
    }

    @Test("a layer that folds names is not added to a mount that does not", .timeLimit(.minutes(1)))
    func adding() throws {
      try withFolded { fixture, folded, point in
        try withMount(MountSetup(main: fixture.main, point: point)) { mount in
          let words = [try Binary.underTest(), "layers", point, "add", folded.point]
          let outcome = try Command(words).run()
          #expect(
            outcome.status == 1 && outcome.errorText.contains("case=insensitive"), "\(outcome.errorText)")
          try mount.command("layers", "add", fixture.substitution)
          #expect(try (mount.point / "Data/x.ini").readText() == "old")
        }
      }
    }

    @Test("hard links in two spellings are no folding", .timeLimit(.minutes(1)))
    func hardLinks() throws {
      let fixture = try Fixture(isFilled: false)
      try (fixture.main / "name").write("text")
      try (fixture.main / "NAME").makeHardLink(of: fixture.main / "name")
      let names = try withMount(fixture.setup) { try $0.names() }
      #expect(names == ["NAME", "name"])
    }
  }
}

extension MountSetup {
  fileprivate func with(_ options: ByteString...) -> MountSetup { with(options) }

  fileprivate func with(_ options: [ByteString]) -> MountSetup {
    var setup = self
    setup.options += options
    return setup
  }
}
