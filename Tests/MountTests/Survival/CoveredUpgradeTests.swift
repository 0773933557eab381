import Posix
import TestSupport
import Testing

/// `bundlefs upgrade` of mounts over their own layers: no path that leads into one may be resolved before it is served.
extension MountTests {
  @Suite(.enabled(if: Mount.hasControl)) struct CoveredUpgradeTests {
    @Test(
      "a mount over MAIN, over a folder in it and over a substitution is upgraded", .timeLimit(.minutes(1)),
      arguments: ["main", "main/folder", "substitution"])
    func upgrade(point: ByteString) throws {
      let fixture = try Fixture()
      var setup = fixture.setup
      setup.point = fixture.folder / point
      try withMount(setup) { mount in
        try mount.command("upgrade")
        #expect(try mount.report().survival?.upgrades == 1)
        try expectFixture(at: mount.point)
        try mount.killWorker()
        try expectFixture(at: mount.point)
      }
    }
  }
}
