import Posix
import TestSupport
import Testing

/// Mount points on and inside the layers: the daemon must not meet its own mount.
extension MountTests {
  @Suite struct PlaceTests {
    enum Place: CaseIterable, Sendable {
      case main, substitution, insideMain, insideSubstitution, insideBoth
    }

    @Test("can be walked whole, and unmounts", .timeLimit(.minutes(1)), arguments: Place.allCases)
    func walk(place: Place) throws {
      let fixture = try Fixture()
      var setup = fixture.setup
      setup.point = point(place, fixture)
      setup.lifetime = 45
      let beneath = try setup.point.names()
      try withMount(setup) { mount in
        try expectFixture(at: mount.point)
        try walkWhole(mount.point)
        try walkWhole(fixture.folder.path)
        let inner = mount.point / ByteString(relativePath(place))
        if setup.point != fixture.main && setup.point != fixture.substitution {
          // The plain directory beneath is seen there, not the mount again.
          #expect(try inner.names().count <= 3)
          #expect(!(inner / "plain.txt").exists)
        }
        try expectLiveEdits(fixture, mount, isMainHidden: place == .main, place)
      }
      #expect(try setup.point.names() == beneath)
    }

    private func relativePath(_ place: Place) -> String {
      switch place {
      case .main, .substitution: ""
      case .insideMain: "only/deep"
      case .insideSubstitution, .insideBoth: "folder"
      }
    }

    private func point(_ place: Place, _ fixture: Fixture) -> ByteString {
      switch place {
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

    /// The layer that can still be reached by its path can be edited as ever.
    private func expectLiveEdits(
      _ fixture: Fixture, _ mount: Mount, isMainHidden: Bool, _ place: Place
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
