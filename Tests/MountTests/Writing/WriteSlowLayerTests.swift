import Posix
import TestSupport
import Testing

/// Writable mounts with layers that are isolated, since their file systems may not answer (`LayerGate`).
extension MountTests {
  @Suite struct WriteSlowLayerTests {
    /// Changes of all kinds.
    private func change(_ point: ByteString) throws {
      try (point / "new").write("new\n")
      try (point / "plain.txt").write("changed\n")
      try (point / "folder/inner.txt").setMode(0o600)
      try (point / "folder/both.txt").rename(to: point / "moved.txt")
      try (point / "dir").makeDirectory()
      try (point / "dir/second").makeHardLink(of: point / "new")
      try (point / "replaced.txt").remove()
      #expect(try (point / "plain.txt").readText() == "changed\n")
      #expect(try (point / "moved.txt").readText() == "substitution's both\n")
    }

    @Test(
      "a layer on FUSE takes part in a writable mount", .timeLimit(.minutes(1)), arguments: [true, false])
    func fuse(isMain: Bool) throws {
      let fixture = try Fixture()
      let layer = isMain ? fixture.main : fixture.substitution
      let view = try BindMount(layer, at: fixture.folder.folder("view"))
      defer { withExtendedLifetime(view) {} }
      var setup =
        isMain
        ? MountSetup(main: view.path, point: fixture.point, substitutions: [fixture.substitution])
        : MountSetup(main: fixture.main, point: fixture.point, substitutions: [view.path])
      setup.options = ["writable"]
      try withMount(setup) { try change($0.point) }
    }

    @Test("changes succeed after the substitution was slow", .timeLimit(.minutes(1)))
    func frozen() throws {
      let fixture = try Fixture(isFilled: false)
      let image = fixture.folder / "image"
      try image.write([])
      try image.setSize(64 << 20)
      try Command("mkfs.ext4", "-q", image.text).check()
      try Command("mount", "-o", "loop", image.text, fixture.substitution.text).check()
      try withWritable(fixture: fixture) { mount, fixture in
        try (mount.point / "before").write("x")
        try Command("fsfreeze", "-f", fixture.substitution.text).check()
        let writer = try Child(.shell("echo x > \"$1\"", mount.point / "during"))
        // Longer than the time after which a layer is isolated; a longer time makes no difference.
        Clock.sleep(2.5)
        try Command("fsfreeze", "-u", fixture.substitution.text).check()
        let outcome = try writer.wait(timeout: 30)
        #expect(outcome.status == 0, "\(outcome.errorText)")
        try (mount.point / "after").write("x")
        try (mount.point / "before").setMode(0o600)
      }
    }
  }
}
