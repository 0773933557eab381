import Posix
import TestSupport
import Testing

/// Repeated accesses are served from the kernel's caches.
extension MountTests.ExclusiveTests {
  @Suite(.enabled(if: Mount.hasControl)) struct CacheHitTests {
    @Test(
      "a second pass over 20,000 files causes no request", .timeLimit(.minutes(5)),
      arguments: ["xattr=on", "xattr=off"] as [ByteString])
    func secondPass(option: ByteString) throws {
      let fixture = try Fixture(isFilled: false)
      try fill(fixture)
      var setup = fixture.setup(option)
      setup.lifetime = 280
      try withMount(setup) { mount in
        let tree = mount.point / "tree"
        let isLong = option == "xattr=off"
        let first = try pass(over: tree, isLong: isLong)
        let growth = try mount.repeatedRequests {
          let again = try pass(over: tree, isLong: isLong)
          #expect(again == first, "the passes have different results")
        }
        #expect(growth == [], "requests of the second pass")
        #expect(try mount.report().uncachedParts == [])
      }
    }

    /// Makes 20,000 files in 200 folders of two layers, and a link in each folder.
    private func fill(_ fixture: Fixture) throws {
      let folders = (0..<200).map { ByteString("tree/folder-\($0 % 20)/inner-\($0)") }
      try fixture.fill(folders: folders, files: 50)
      for name in folders {
        try (fixture.main / name / "link").makeLink(to: "m1")
        try (fixture.main / name / "s7").write("hidden\n")
      }
    }

    /// Reads all files and links, stats and lists everything, and looks up missing names.
    /// Reads come before stats: a READ invalidates the cached atime, and nothing else.
    /// - Returns: a checksum of the results.
    private func pass(over tree: ByteString, isLong: Bool) throws -> String {
      let script = #"""
        set -euo pipefail
        cd "$1"
        {
          find . -type f -print0 | xargs -0 -n 1000 cat
          find . -type l -printf '%l\n'
          find . -printf '%y %m %n %s %T@ %p %l\n'
          ls -UR
          for folder in folder-*/inner-*; do [[ ! -e $folder/missing && -r $folder/m1 ]]; done
          [[ $2 != long ]] || ls -lUR
        } | sha256sum
        """#
      return try Command.shell(script, tree, isLong ? "long" : "short").check(timeout: 90).outputText
    }
  }
}
