import Posix
import TestSupport
import Testing

/// Mounts inside a mount where case does not count.
extension MountTests {
  @Suite struct InnerMountTests {
    private static let spellings: [ByteString] = ["Game/Data", "game/data", "GAME/Data", "Game/DATA"]

    /// Mounts a layer with `Game/Data/file`, and calls the body with another folder.
    private func withGame(_ body: (Mount, ByteString, _ main: ByteString) throws -> Void) throws {
      let fixture = try Fixture(isFilled: false)
      try (fixture.main / "Game/Data").makeDirectories()
      try (fixture.main / "Game/Data/file").write("beneath")
      let mods = try fixture.folder.folder("mods")
      try (mods / "file").write("mod")
      var setup = fixture.setup
      setup.options += ["case=insensitive"]
      try withMount(setup) { mount in
        // What is still mounted inside would keep it in use.
        defer { _ = try? Command("umount", "-l", (mount.point / "Game/Data").text).run() }
        try body(mount, mods, fixture.main)
      }
    }

    private func contents(_ mount: Mount) -> [String] {
      Self.spellings.map { (try? (mount.point / $0 / "file").readText()) ?? "none" }
    }

    private func bind(_ source: ByteString, _ target: ByteString) throws {
      try Command("mount", "--bind", source.text, target.text).check()
    }

    @Test("every spelling leads to a mount inside, until it is unmounted", .timeLimit(.minutes(1)))
    func spellings() throws {
      try withGame { mount, mods, _ in
        let (beneath, mod) = (
          Self.spellings.map { _ in "beneath" }, Self.spellings.map { _ in "mod" }
        )
        for spelling in Self.spellings {
          // The kernel has cached all spellings.
          #expect(contents(mount) == beneath)
          try bind(mods, mount.point / spelling)
          #expect(eventually(within: 20) { contents(mount) == mod }, "\(spelling): \(contents(mount))")
          // Listings name them as the layer does, with attributes.
          #expect(try (mount.point / "gAME").names() == ["Data"])
          #expect(contents(mount) == mod)
          let status = try mount.command("status").outputText
          #expect(!status.contains("mounted at"), "\(status)")
          try Command("umount", (mount.point / "game/data").text).check()
          #expect(eventually(within: 20) { contents(mount) == beneath }, "\(contents(mount))")
        }
      }
    }

    @Test("programs that use different spellings at once all reach it", .timeLimit(.minutes(2)))
    func parallel() throws {
      try withGame { mount, mods, _ in
        try bind(mods, mount.point / "Game/Data")
        #expect(eventually(within: 20) { contents(mount).allSatisfy { $0 == "mod" } })
        let readers = try Self.spellings.map { spelling in
          try Child(
            .shell(
              "for ((i = 0; i < 3000; i++)); do read -r text < \"$1\"; [[ $text == mod ]] || echo \"$text\"; done",
              mount.point / spelling / "file"))
        }
        for reader in readers {
          let outcome = try reader.wait(timeout: 100)
          #expect(outcome.outputText == "" && outcome.errorText == "")
        }
      }
    }

    @Test("a layer's change beside a mount inside shows in every spelling", .timeLimit(.minutes(1)))
    func change() throws {
      try withGame { mount, mods, main in
        try bind(mods, mount.point / "Game/Data")
        #expect(eventually(within: 20) { contents(mount).allSatisfy { $0 == "mod" } })
        let layer = main / "Game"
        for round in 0..<20 {
          try (layer / "new.txt").write("\(round)")
          try mount.barrier()
          for spelling in ["game/NEW.TXT", "Game/new.txt", "GAME/New.txt"] {
            #expect(try (mount.point / ByteString(spelling)).readText() == "\(round)")
          }
        }
      }
    }

    @Test("the status names a mount on a file, which one spelling leads to", .timeLimit(.minutes(1)))
    func file() throws {
      try withGame { mount, mods, _ in
        let place = mount.point / "Game/Data/file"
        try bind(mods / "file", place)
        #expect(
          eventually(within: 20) {
            (try? mount.command("status").outputText.contains("mounted at \(place): other spellings")) == true
          })
        try Command("umount", place.text).check()
        #expect(try !mount.command("status").outputText.contains("mounted at"))
      }
    }
  }
}
