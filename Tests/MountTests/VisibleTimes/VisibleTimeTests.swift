import Glibc
import Posix
import TestSupport
import Testing

/// `-o mtime=visible`.
extension MountTests {
  @Suite(.enabled(if: Mount.hasControl)) struct VisibleTimeTests {
    static let caches: [ByteString] = ["cache=coherent", "cache=none", "cache=1"]

    @Test("an override that comes and goes", .timeLimit(.minutes(1)), arguments: caches)
    func overriding(cache: ByteString) throws {
      let fixture = try VisibleTimeFixture(cache)
      try withMount(fixture.setup) { mount in
        let file = mount.point / "file"
        try fixture.expectOwnTime(file, year: 2001)
        for _ in 0..<2 {
          var start = TimeSpec.now
          try fixture.write("top", to: fixture.top / "file", year: 2000)
          try fixture.expect("top", at: file, after: start)
          start = .now
          try (fixture.top / "file").remove()
          try fixture.expect("main", at: file, after: start)
        }
      }
    }

    @Test("without the option, a file has its own time", .timeLimit(.minutes(1)))
    func off() throws {
      let fixture = try VisibleTimeFixture()
      for options in [[], ["mtime=file"]] as [[ByteString]] {
        fixture.setup.options = options
        try withMount(fixture.setup) { mount in
          try fixture.expectOwnTime(mount.point / "file", year: 2001)
          try fixture.write("top", to: fixture.top / "file", year: 2000)
          try mount.barrier()
          try fixture.expectOwnTime(mount.point / "file", year: 2000)
          try (fixture.top / "file").remove()
          try mount.barrier()
          try fixture.expectOwnTime(mount.point / "file", year: 2001)
        }
      }
      #expect(!fixture.state.exists)
    }

    @Test("whiteouts, renames in a layer and switches of the layers", .timeLimit(.minutes(1)))
    func changes() throws {
      let fixture = try VisibleTimeFixture()
      try fixture.write("other", to: fixture.further / "file", year: 1999)
      try withMount(fixture.setup) { mount in
        let file = mount.point / "file"
        try fixture.expectOwnTime(file, year: 2001)
        var start = TimeSpec.now
        func expect(_ text: String, _ change: () throws -> Void) throws {
          start = .now
          try change()
          try mount.barrier()
          try fixture.expect(text, at: file, after: start)
        }
        try expect("other") { try mount.setLayers([fixture.further, fixture.top]) }
        try expect("main") { try mount.setLayers([fixture.top]) }
        try fixture.write("old", to: fixture.main / "old", year: 1998)
        try expect("old") { try (fixture.main / "old").rename(to: fixture.main / "file") }
        try (fixture.top / "file").makeWhiteout()
        try mount.barrier()
        #expect(!file.exists)
        start = .now
        try fixture.write("again", to: fixture.main / "file", year: 1997)
        try (fixture.top / "file").remove()
        try mount.barrier()
        try fixture.expect("again", at: file, after: start)
      }
    }

    @Test("a content of the same size whose time was set back in a layer", .timeLimit(.minutes(1)))
    func rewritten() throws {
      let fixture = try VisibleTimeFixture()
      try withMount(fixture.setup) { mount in
        try fixture.expectOwnTime(mount.point / "file", year: 2001)
        try (fixture.main / "file").setMode(0o600)
        try mount.barrier()
        try fixture.expectOwnTime(mount.point / "file", year: 2001)
        let start = TimeSpec.now
        try (fixture.main / "file").overwrite(Array("MAIN".utf8), at: 0)
        try (fixture.main / "file").setModified(VisibleTimeFixture.time(2001))
        try mount.barrier()
        try fixture.expect("MAIN", at: mount.point / "file", after: start)
      }
    }

    @Test("an archive that is replaced by another with the same times", .timeLimit(.minutes(1)))
    func archives() throws {
      let fixture = try VisibleTimeFixture()
      func archive(_ text: String) -> [UInt8] {
        ZipBuilder([.init("file", text), .init("same", "the same")]).bytes
      }
      let path = fixture.folder / "layer.zip"
      try path.write(archive("one"))
      fixture.setup.substitutions = [path]
      var same: StatResult?
      try withMount(fixture.setup) { mount in
        try #require(try (mount.point / "file").readText() == "one")
        let own = try (mount.point / "file").status()
        same = try (mount.point / "same").status()
        #expect(own.modified < VisibleTimeFixture.time(2021))
        let start = TimeSpec.now
        try path.replace(archive("two"))
        try mount.barrier()
        try fixture.expect("two", at: mount.point / "file", after: start)
        #expect(try (mount.point / "same").status().modified == same?.modified)
      }
      let start = TimeSpec.now
      try path.replace(archive("six"))
      try withMount(fixture.setup) { mount in
        try fixture.expect("six", at: mount.point / "file", after: start)
        #expect(try (mount.point / "same").status().modified == same?.modified)
      }
    }

    @Test("listings, statx and a forgotten file say the same", .timeLimit(.minutes(1)))
    func listings() throws {
      let fixture = try VisibleTimeFixture()
      for number in 0..<30 {
        try fixture.write("main", to: fixture.main / ByteString("d/\(number)"), year: 2001)
      }
      try withMount(fixture.setup) { mount in
        let folder = mount.point / "d"
        for name in try folder.names() { try fixture.expectOwnTime(folder / name, year: 2001) }
        let start = TimeSpec.now
        for name in try folder.names() {
          try fixture.write("top", to: fixture.top / "d" / name, year: 2000)
        }
        try mount.barrier()
        // Asks by READDIRPLUS.
        let listed = try Command(["ls", "-l", "--time-style=+%s.%N", folder]).check().outputText
        for name in try folder.names() {
          let status = try (folder / name).status()
          #expect(status.modified > start)
          let fraction = String(String(1_000_000_000 + status.modified.nanoseconds).dropFirst())
          #expect(listed.contains(" \(status.modified.seconds).\(fraction) \(name)\n"))
          let mount = try Command(["stat", "-c", "%.9Y", folder / name]).check().outputText
          #expect(mount == "\(status.modified.seconds).\(fraction)\n")
          if geteuid() == 0 { try ByteString("/proc/sys/vm/drop_caches").write("2") }
          #expect(try (folder / name).status() == status)
        }
      }
    }

    @Test("spellings of a name are one, and tables that are merged", .timeLimit(.minutes(1)))
    func otherNames() throws {
      let fixture = try VisibleTimeFixture("case=insensitive", "strings=merge")
      let table = "a.strings" as ByteString
      try fixture.write("\"a\" = \"1\";\n", to: fixture.main / table, year: 2001)
      try withMount(fixture.setup) { mount in
        try fixture.expectOwnTime(mount.point / "FILE", year: 2001)
        try fixture.expectOwnTime(mount.point / table, year: 2001)
        let start = TimeSpec.now
        try fixture.write("top", to: fixture.top / "File", year: 2000)
        try fixture.write("\"b\" = \"2\";\n", to: fixture.top / table, year: 2000)
        try mount.barrier()
        try fixture.expect("top", at: mount.point / "file", after: start)
        try fixture.expect("top", at: mount.point / "fILE", after: start)
        #expect(try (mount.point / table).status().modified > start)
        #expect(try (mount.point / "FILE").status().modified == (mount.point / "file").status().modified)
      }
    }

    @Test("a read that is warm causes no request", .timeLimit(.minutes(1)))
    func warm() throws {
      let fixture = try VisibleTimeFixture("xattr=off")
      try withMount(fixture.setup) { mount in
        _ = try (mount.point / "file").readText()
        try fixture.write("top", to: fixture.top / "file", year: 2000)
        try mount.barrier()
        _ = try (mount.point / "file").readText()
        let requests = try mount.repeatedRequests {
          _ = try (mount.point / "file").readText()
          _ = try (mount.point / "file").status()
        }
        #expect(requests.isEmpty, "\(requests)")
      }
    }
  }
}
