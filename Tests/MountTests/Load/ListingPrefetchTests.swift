import Posix
import TestSupport
import Testing

/// Prefetching of listings: a thread of the daemon lists the directories below a listed one.
extension MountTests.ExclusiveTests {
  @Suite struct ListingPrefetchTests {
    private func folder(_ number: Int) -> ByteString { ByteString("tree/folder\(number)") }

    private func fixture(folders: Int) throws -> Fixture {
      let fixture = try Fixture(isFilled: false)
      try fixture.fill(folders: (0..<folders).flatMap { [folder($0), folder($0) / "inner"] }, files: 4)
      return fixture
    }

    /// All entries with type, size and mtime, as find(1) prints them.
    private func walk(_ folder: ByteString) throws -> [Substring] {
      try Command.shell("cd \"$1\" && find . -printf '%P %y %s %T@\\n' | grep -v ' d ' | sort", folder)
        .check()
        .outputText.split(separator: "\n")
    }

    /// The expected result of a walk, from merged copies of the layers.
    private func expected(_ fixture: Fixture) throws -> [Substring] {
      let copy = fixture.folder / "copy"
      _ = try Command.shell(
        """
        rm -rf "$3" && cp -a "$1" "$3" && cp -a --remove-destination "$2/." "$3"
        """, fixture.main, fixture.substitution, copy
      ).check()
      return try walk(copy / "tree")
    }

    @Test("a walk uses prefetched listings, which are complete", .timeLimit(.minutes(3)))
    func walk() throws {
      let fixture = try fixture(folders: 200)
      let expected = try expected(fixture)
      var maximum = 0
      // A busy machine may prefetch few listings; then the walk is repeated with a new mount.
      for _ in 0..<8 where maximum < 40 {
        try withMount(fixture.setup) { mount in
          #expect(try walk(mount.point / "tree") == expected)
          maximum = max(maximum, try mount.report().listedAhead)
          #expect(try walk(mount.point / "tree") == expected)
        }
      }
      #expect(maximum >= 40, "\(maximum) of 400")
    }

    @Test("unused prefetched nodes are evicted while the daemon is idle", .timeLimit(.minutes(1)))
    func evicted() throws {
      let fixture = try fixture(folders: 30)
      try withMount(fixture.setup) { mount in
        _ = try (mount.point / "tree").list()
        for number in 0..<30 { _ = try (mount.point / folder(number)).status() }
        // The root, the tree and its folders, without their entries.
        #expect(eventually(within: 20) { (try? mount.report().nodes) == 32 })
      }
    }

    @Test("prefetched listings follow every change", .timeLimit(.minutes(3)), arguments: [UInt64](1...6))
    func changes(seed: UInt64) throws {
      let fixture = try fixture(folders: 40)
      var random = SplitMix64(seed: seed)
      for _ in 0..<4 {
        // A new mount: listings that the kernel has cached are not prefetched.
        try withMount(fixture.setup) { mount in
          for number in (0..<40).shuffled(using: &random) {
            // Other folders are prefetched while they change.
            _ = try (mount.point / folder(number)).list()
            for _ in 0..<3 { try change(fixture, &random) }
          }
          try mount.barrier()
          #expect(try walk(mount.point / "tree") == expected(fixture))
        }
      }
    }

    @Test("a change through a hard link in another directory is visible", .timeLimit(.minutes(1)))
    func links() throws {
      let fixture = try fixture(folders: 20)
      let other = fixture.main / "tree/other"
      try other.makeDirectory()
      try withMount(fixture.setup) { mount in
        _ = try (mount.point / "tree/other").list()
        for number in 0..<20 {
          _ = try (mount.point / folder(number)).list()
          let file = folder(number) / "inner/m0"
          let link = other / ByteString("link\(number)")
          try link.makeHardLink(of: fixture.main / file)
          try link.write("by another name")
          try mount.barrier()
          _ = try (mount.point / folder(number) / "inner").list()
          #expect(try (mount.point / file).read() == Array("by another name".utf8))
          try link.write("and once more, longer")
          try mount.barrier()
          #expect(try (mount.point / file).read() == Array("and once more, longer".utf8))
        }
      }
    }

    private func change(_ fixture: Fixture, _ random: inout SplitMix64) throws {
      let subfolder = Bool.random(using: &random) ? "" : "/inner"
      let directory = folder(Int.random(in: 0..<40, using: &random)) + ByteString(subfolder)
      let layer = Bool.random(using: &random) ? fixture.main : fixture.substitution
      let prefix = Bool.random(using: &random) ? "m" : "s"
      let path = layer / directory / ByteString("\(prefix)\(Int.random(in: 0..<6, using: &random))")
      let content = String(repeating: "x", count: Int.random(in: 0...40, using: &random))
      switch Int.random(in: 0..<4, using: &random) {
      case 0: try path.write(content)
      case 1: try path.replace(content)
      case 2: try? path.remove()
      default:
        try? (layer / directory / ByteString("new\(Int.random(in: 0..<3, using: &random))")).makeDirectories()
      }
    }
  }
}
