import Posix
import TestSupport
import Testing

/// Mount points on and inside the layers: the daemon must not access its own mount.
extension MountTests {
  @Suite struct MountPointPlacementTests {
    enum Placement: CaseIterable, Sendable {
      case main, substitution, insideMain, insideSubstitution, insideBoth
    }

    @Test("the mount can be walked and unmounted", .timeLimit(.minutes(1)), arguments: Placement.allCases)
    func walk(placement: Placement) throws {
      let fixture = try Fixture()
      var setup = fixture.setup
      setup.point = point(placement, fixture)
      setup.lifetime = 45
      let beneath = try setup.point.names()
      try withMount(setup) { mount in
        try expectFixture(at: mount.point)
        try walkWhole(mount.point)
        try walkWhole(fixture.folder.path)
        let inner = mount.point / ByteString(relativePath(placement))
        if setup.point != fixture.main && setup.point != fixture.substitution {
          // The path shows the layer's directory, not the mount again.
          #expect(try inner.names().count <= 3)
          #expect(!(inner / "plain.txt").exists)
        }
        try expectLiveEdits(fixture, mount, isMainHidden: placement == .main)
      }
      #expect(try setup.point.names() == beneath)
    }

    private func relativePath(_ placement: Placement) -> String {
      switch placement {
      case .main, .substitution: ""
      case .insideMain: "only/deep"
      case .insideSubstitution, .insideBoth: "folder"
      }
    }

    private func point(_ placement: Placement, _ fixture: Fixture) -> ByteString {
      switch placement {
      case .main: fixture.main
      case .substitution: fixture.substitution
      case .insideMain: fixture.main / "only/deep"
      case .insideSubstitution: fixture.substitution / "folder"
      case .insideBoth: fixture.main / "folder"
      }
    }

    private func walkWhole(_ path: ByteString) throws {
      try Command("find", path.text, "-type", "f", "-exec", "cat", "{}", "+").check(timeout: 20)
      try Command("ls", "-laR", path.text).check(timeout: 20)
    }

    /// Expects that changes to a layer that is still accessible by its path appear in the mount.
    private func expectLiveEdits(
      _ fixture: Fixture, _ mount: Mount, isMainHidden: Bool
    ) throws {
      let layer = isMainHidden ? fixture.substitution : fixture.main
      try (layer / "new.txt").write("new")
      try mount.barrier()
      #expect(try (mount.point / "new.txt").readText() == "new")
      try (layer / "new.txt").remove()
      try mount.barrier()
      try expectErrno(.noSuchFileOrDirectory) { _ = try (mount.point / "new.txt").status() }
    }
  }
}
