import Posix
import TestSupport
import Testing

/// `bundlefs layers MOUNTPOINT set`, `add`, `remove` and `move`.
extension MountTests {
  @Suite struct LayersCommandTests {
    @Test("each command changes the list and the view at once", .timeLimit(.minutes(2)))
    func changes() throws {
      let fixture = try LayersFixture()
      try withMount(fixture.setup()) { _ in
        try fixture.expect()
        try fixture.change("add", "mods/a")
        try fixture.expect("a")
        try fixture.change("add", "mods/b", fixture.layer("c.zip"), "--below", "a")
        try fixture.expect("a", "b", "c.zip")
        try fixture.change("move", "c.zip", "--top")
        try fixture.expect("c.zip", "a", "b")
        try fixture.change("move", "mods/c.zip", "--below", "a")
        try fixture.expect("a", "c.zip", "b")
        try fixture.change("move", "a", "--bottom")
        try fixture.expect("c.zip", "b", "a")
        try fixture.change("remove", "c.zip", "mods/b")
        try fixture.expect("a")
        try fixture.change("set", "mods/b:mods/a:" + fixture.layer("c.zip"))
        try fixture.expect("b", "a", "c.zip")
        try fixture.change("set", "mods/b:mods/a:" + fixture.layer("c.zip"))
        try fixture.expect("b", "a", "c.zip")
        try fixture.change("set", "")
        try fixture.expect()
        try fixture.change("add", "mods/a", "--above", "MAIN")
        try fixture.expect("a")
      }
    }

    @Test("names of any bytes, and directories in archives", .timeLimit(.minutes(1)))
    func names() throws {
      let fixture = try LayersFixture()
      let odd = fixture.layer(ByteString(Array(#"a:b, c\&?#%41="#.utf8) + [0xFF]))
      try odd.makeDirectory()
      try LayersFixture.fill(odd)
      let zip = fixture.layer("d:e.zip")
      try zip.write(ZipBuilder([.init("in side/who", "inside"), .init("who", "outside")]).bytes)
      try withMount(fixture.setup("a")) { mount in
        func who() throws -> [UInt8] { try (mount.point / "who").read() }
        try fixture.change("add", odd)
        #expect(try who() == odd.lastComponent.text.utf8.map { $0 })
        try fixture.change("set", MountSetup.escaped(zip) + "!/in side:" + MountSetup.escaped(odd))
        #expect(try who() == Array("inside".utf8))
        #expect(try fixture.listed()[0].path == (zip + "!/in side").text)
        try fixture.change("move", odd.lastComponent, "--top")
        #expect(try who() == odd.lastComponent.text.utf8.map { $0 })
        try fixture.change("remove", odd)
        try fixture.change("remove", "in side")
        try fixture.change("add", "mods/a")
        try fixture.expect("a")
      }
    }

    @Test("what cannot be done changes nothing, and is named", .timeLimit(.minutes(1)))
    func refusals() throws {
      let fixture = try LayersFixture()
      try (fixture.folder / "text").write("no archive")
      let (a, main) = (fixture.layer("a").text, fixture.main.text)
      try withMount(fixture.setup("a", "b")) { _ in
        try fixture.expectRefusal("add", "mods/none", naming: "mods/none")
        try fixture.expectRefusal("set", "mods/b:mods/none", naming: "mods/none")
        try fixture.expectRefusal("add", "mods/c.zip", "text", naming: "\(fixture.folder / "text")")
        try fixture.expectRefusal("add", "mods/c.zip!/none", naming: "c.zip")
        try fixture.expectRefusal("add", "mods/a/", naming: a, "already")
        try fixture.expectRefusal("remove", "none", naming: "'none'", a, main)
        try fixture.expectRefusal("remove", "main", naming: main, "MAIN")
        try fixture.expectRefusal("move", "main", "--top", naming: main, "MAIN")
        try fixture.expectRefusal("move", "a", "--below", "main", naming: main, "MAIN")
        try fixture.expectRefusal("move", "a", "--above", "mods/a", naming: a, "itself")
        try fixture.expectRefusal("move", "a", naming: "position", status: 2)
        try fixture.expect("a", "b")
      }
    }

    @Test("only the owner of the mount and root change the layers", .timeLimit(.minutes(1)))
    func otherUsers() throws {
      let fixture = try LayersFixture()
      let words = [try Binary.underTest(), "layers", fixture.point, "remove", "a"] as [ByteString]
      try withMount(fixture.setup("a", options: ["allow_other", "routes_mode=622"])) { _ in
        let outcome = try Command(words).asUser(65534).run(timeout: 30)
        #expect(outcome.status == 1 && outcome.errorText.contains("\(fixture.point)"), "\(outcome.errorText)")
        try fixture.expect("a")
      }
      try withMount(fixture.setup("a", options: ["ro"])) { _ in
        try fixture.expectRefusal("remove", "a", naming: "'ro'", "'rw'")
      }
      try withMount(fixture.setup("a", options: ["survive=off"])) { _ in
        try fixture.expectRefusal("remove", "a", naming: "survive=off")
      }
    }

    @Test("the layer that takes changes stays on top", .timeLimit(.minutes(1)))
    func writable() throws {
      let fixture = try LayersFixture()
      let upper = fixture.layer("upper")
      try withMount(fixture.setup("a", options: ["writable=" + upper])) { mount in
        try fixture.change("add", "mods/b")
        try (mount.point / "who").write("changed")
        try (mount.point / "new").write("new")
        try fixture.change("set", "mods/c.zip")
        #expect(
          try fixture.listed().map(\.path) == [upper, fixture.layer("c.zip"), fixture.main].map(\.text))
        #expect(try (mount.point / "who").readText() == "changed")
        #expect(try (upper / "new").readText() == "new")
        try (mount.point / "new").write("newer")
        #expect(try (upper / "new").readText() == "newer")
        try fixture.expectRefusal("remove", "upper", naming: upper.text, "on top")
        try fixture.expectRefusal("move", "c.zip", "--above", "upper", naming: upper.text, "on top")
      }
    }

    @Test("commands at the same time all take effect", .timeLimit(.minutes(2)))
    func concurrent() throws {
      let fixture = try LayersFixture()
      let names = (0..<6).map { ByteString("m\($0)") }
      for name in names { try LayersFixture.fill(try fixture.folder.folder("mods/" + name)) }
      try withMount(fixture.setup("a")) { _ in
        let children = try names.map {
          try Child(Command([try Binary.underTest(), "layers", fixture.point, "add", fixture.layer($0)]))
        }
        for child in children {
          let outcome = try child.wait(timeout: 60)
          #expect(outcome.status == 0, "\(outcome.errorText)")
        }
        let paths = try fixture.listed().map(\.path)
        #expect(Set(paths) == Set((names + ["a"]).map { fixture.layer($0).text } + [fixture.main.text]))
        #expect(paths.count == names.count + 2)
      }
    }
  }
}
