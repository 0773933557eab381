import Posix
import TestSupport
import Testing

/// `bundlefs layers MOUNTPOINT`, which prints the layers.
extension MountTests {
  @Suite struct LayersListTests {
    @Test("prints the layers, topmost first, and counts their names", .timeLimit(.minutes(1)))
    func list() throws {
      let fixture = try LayersFixture()
      try (fixture.layer("a") / ".wh.main.txt").write("")
      try (fixture.layer("b") / "d/e").makeDirectories()
      try (fixture.main / "d").makeDirectory()
      try (fixture.main / "d/f").write("")
      let (a, c) = (fixture.layer("a"), fixture.layer("c.zip"))
      try withMount(fixture.setup("a", "c.zip", "b")) { _ in
        #expect(
          try fixture.run().outputText == """
            1     directory  \(a)
            2     archive    \(c)
            3     directory  \(fixture.layer("b"))
            MAIN  directory  \(fixture.main)

            """)
        // a: who, a.txt; c.zip: c.zip.txt; b: b.txt, d/e; MAIN: d/f, and main.txt is hidden. d is in two layers.
        #expect(
          try fixture.run("--count").outputText == """
            1     directory  2 names, hides 1  \(a)
            2     archive    1 name            \(c)
            3     directory  2 names           \(fixture.layer("b"))
            MAIN  directory  1 name            \(fixture.main)

            """)
        let layers = try fixture.listed(counts: true)
        #expect(layers.map(\.names) == [2, 1, 2, 1] && layers.map(\.hides) == [1, 0, 0, 0])
        #expect(layers.map(\.role) == ["substitution", "substitution", "substitution", "MAIN"])
        #expect(layers.map(\.kind) == ["directory", "archive", "directory", "directory"])
        #expect(try fixture.listed().allSatisfy { $0.names == nil && $0.problems.isEmpty })
      }
    }

    @Test(
      "the counts are those of random stacks", .timeLimit(.minutes(1)), arguments: [3, 14, 15] as [UInt64])
    func counts(seed: UInt64) throws {
      let stack = GeneratedStack(seed: seed)
      try stack.mounted { mount, roots in
        let output = try mount.command("layers", "--json", "--count").outputText
        let entries = ExpectedComparison(stack.layers, roots: roots).entries
        for root in roots {
          let own = entries.filter { $0.layer == root.text }
          let names = own.count {
            $0.verdict != "hidden"
              && ($0.kind != "directory" || $0.below.isEmpty || $0.verdict == "overridden")
          }
          let line = output.split(separator: "\n").first { $0.contains("\"path\":\"\(root)\"") }
          let hides = own.count { $0.verdict == "hidden" }
          #expect(line?.contains("\"names\":\(names),\"hides\":\(hides)}") == true, "\(root): \(output)")
        }
      }
    }

    @Test("says what is wrong with a layer", .timeLimit(.minutes(1)))
    func problems() throws {
      let fixture = try LayersFixture()
      let zip = fixture.layer("c.zip")
      try zip.write(ZipBuilder([.init("who", "c.zip"), .init("../passwd", "")]).bytes)
      try withMount(fixture.setup("c.zip")) { _ in
        let problems = try fixture.listed()[0].problems
        try #require(problems.count == 1 && problems[0].hasPrefix("skipped 1 ("), "\(problems)")
        #expect(try fixture.run().outputText.hasPrefix("1     archive    \(zip)  (\(problems[0]))\n"))
      }
    }

    @Test("marks the layer that takes changes", .timeLimit(.minutes(1)))
    func writable() throws {
      let fixture = try LayersFixture()
      try withMount(fixture.setup("a", "b", options: ["writable"])) { _ in
        let roles = try fixture.listed().map(\.role)
        #expect(roles == ["writable", "substitution", "MAIN"])
        #expect(try fixture.run().outputText.contains("\(fixture.layer("a"))  (writable)\n"))
      }
    }

    @Test("fails where nothing is mounted, and with wrong arguments", .timeLimit(.minutes(1)))
    func refusals() throws {
      let fixture = try LayersFixture()
      let outcome = try fixture.run()
      #expect(outcome.status == 1 && outcome.errorText.contains("\(fixture.point): no bundlefs is mounted"))
      try withMount(fixture.setup("a")) { _ in
        try fixture.expectRefusal("frobnicate", naming: "frobnicate", "set, add, remove", status: 2)
        try fixture.expectRefusal("--nosuch", naming: "--nosuch", status: 2)
      }
    }
  }
}
