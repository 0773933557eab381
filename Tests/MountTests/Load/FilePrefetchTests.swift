import Posix
import TestSupport
import Testing

/// Prefetching of files that are read in sequence.
extension MountTests.ExclusiveTests {
  @Suite struct FilePrefetchTests {
    private static let folder: ByteString = "folder"
    /// Seconds in which a few files can be prefetched, even on a busy machine.
    private static let pause = 0.003

    private func fixture(files: Int) throws -> Fixture {
      let fixture = try Fixture(isFilled: false)
      try fixture.fill(folders: [Self.folder], files: files)
      return fixture
    }

    /// The files' names in listing order.
    private func listed(_ mount: Mount, _ folder: ByteString = Self.folder) throws -> [ByteString] {
      let names = try (mount.point / folder).list().map(\.name)
      for name in names { _ = try (mount.point / folder / name).status() }
      return names
    }

    private func expectContent(
      _ names: [ByteString], in folder: ByteString = Self.folder, _ fixture: Fixture, _ mount: Mount
    ) throws {
      for name in names {
        let layer = name.bytes.first == UInt8(ascii: "m") ? fixture.main : fixture.substitution
        let seen = try (mount.point / folder / name).read()
        #expect(try seen == (layer / folder / name).read(), "\(name)")
      }
    }

    @Test("sequential reads find the next files prefetched", .timeLimit(.minutes(3)))
    func sequential() throws {
      let fixture = try fixture(files: 400)
      try withMount(fixture.setup) { mount in
        let names = try listed(mount)
        for start in stride(from: 0, to: names.count, by: 20) {
          try expectContent(Array(names[start..<start + 20]), fixture, mount)
          // Waits for the prefetcher on a busy machine.
          _ = try eventually(within: 5) {
            let report = try mount.report()
            return report.readAhead + RequestCounts(report)["READ"] >= start + 20
          }
        }
        let report = try mount.report()
        #expect(report.readAhead >= 400, "\(report.readAhead) of 800")
        #expect(RequestCounts(report)["READ"] <= 400)
        #expect(try mount.repeatedRequests { try expectContent(names, fixture, mount) } == [])
      }
    }

    @Test("directories that are read in the order of the listings are prefetched", .timeLimit(.minutes(3)))
    func directories() throws {
      let fixture = try Fixture(isFilled: false)
      let count = 60
      try fixture.fill(folders: (0..<count).map { ByteString("folder\($0)") }, files: 5)
      try withMount(fixture.setup) { mount in
        let folders = try mount.point.list().map(\.name).filter { $0.bytes.starts(with: Self.folder.bytes) }
        #expect(folders.count == count)
        let names = try folders.map { try listed(mount, $0) }
        for (index, folder) in folders.enumerated() {
          try expectContent(names[index], in: folder, fixture, mount)
        }
        let report = try mount.report()
        #expect(RequestCounts(report)["READ"] < count, "fewer than one for each directory")
        #expect(report.readAhead >= count * 10 - RequestCounts(report)["READ"])
      }
    }

    @Test("concurrent reads in random order have the right content", .timeLimit(.minutes(2)))
    func randomOrder() throws {
      let fixture = try fixture(files: 300)
      try withMount(fixture.setup) { mount in
        var random = SplitMix64(seed: 7)
        let names = try listed(mount).shuffled(using: &random)
        let outcome = try Command.shell(
          """
          cd "$1" && for start in 1 2 3 4; do ls -U | sort -R | xargs cat | sort | md5sum & done; wait
          """, mount.point / Self.folder
        ).check()
        let sums = Set(outcome.outputText.split(separator: "\n"))
        #expect(sums.count == 1)
        try expectContent(names, fixture, mount)
      }
    }

    @Test("reading two of many files prefetches only a few", .timeLimit(.minutes(1)))
    func twoFiles() throws {
      let fixture = try fixture(files: 500)
      try withMount(fixture.setup) { mount in
        let names = try listed(mount)
        try expectContent([names[3]], fixture, mount)
        Clock.sleep(Self.pause)
        #expect(try mount.report().readAhead == 0, "one file is no sequence")
        try expectContent([names[4]], fixture, mount)
        Clock.sleep(Self.pause)
        #expect(try mount.report().readAhead <= 4)
      }
    }

    @Test(
      "prefetched files follow every change", .timeLimit(.minutes(2)), arguments: [UInt64](1...4))
    func changes(seed: UInt64) throws {
      let fixture = try fixture(files: 100)
      try withMount(fixture.setup) { mount in
        var random = SplitMix64(seed: seed)
        for round in 0..<150 {
          let names = try listed(mount)
          for _ in 0..<Int.random(in: 1...6, using: &random) {
            let name = try #require(names.randomElement(using: &random))
            let layer = name.bytes.first == UInt8(ascii: "m") ? fixture.main : fixture.substitution
            let path = layer / Self.folder / name
            let content =
              "\(round) \(name) " + String(repeating: "x", count: Int.random(in: 0...40, using: &random))
            if Bool.random(using: &random) { try path.write(content) } else { try path.replace(content) }
            // Reading its neighbours may prefetch the changing file.
            let index = names.firstIndex(of: name) ?? 0
            for near in names[max(0, index - 3)..<index] { _ = try (mount.point / Self.folder / near).read() }
          }
          try mount.barrier()
          try expectContent(names.shuffled(using: &random).suffix(12), fixture, mount)
        }
      }
    }

    @Test(
      "files have the right content with few descriptors, and without coherent caching",
      .timeLimit(.minutes(1)))
    func limits() throws {
      let fixture = try fixture(files: 300)
      var few = fixture.setup
      few.descriptorLimit = 64
      try withMount(few) { mount in try expectContent(try listed(mount), fixture, mount) }
      var uncached = fixture.setup
      uncached.options = ["cache=5"]
      try withMount(uncached) { mount in
        try expectContent(try listed(mount), fixture, mount)
        #expect(try mount.report().readAhead == 0)
      }
    }

    @Test("large files and files with several names are not prefetched", .timeLimit(.minutes(1)))
    func ineligibleFiles() throws {
      let fixture = try Fixture(isFilled: false)
      let folder = fixture.main / Self.folder
      try folder.makeDirectory()
      for number in 0..<20 {
        try (folder / ByteString("large\(number)")).write([UInt8](repeating: UInt8(number), count: 140_000))
        try (folder / ByteString("one\(number)")).write("twin")
        try (folder / ByteString("two\(number)")).makeHardLink(of: folder / ByteString("one\(number)"))
      }
      try withMount(fixture.setup) { mount in
        for name in try listed(mount) { _ = try (mount.point / Self.folder / name).read() }
        Clock.sleep(Self.pause)
        #expect(try mount.report().readAhead == 0)
      }
    }
  }
}
