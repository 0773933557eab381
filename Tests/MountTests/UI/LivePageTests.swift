import Posix
import Routing
import TestSupport
import Testing

/// What the page of `bundlefs ui` learns of versions, property lists and notifications. `scripts/test --browser` enables
/// the tests in a browser.
extension MountTests {
  @Suite struct LivePageTests {
    private func writeBinary(_ file: ByteString, _ dictionary: String) throws {
      let script =
        "import plistlib, sys; plistlib.dump(\(dictionary), open(sys.argv[1], 'wb'), fmt=plistlib.FMT_BINARY)"
      _ = try Command(["python3", "-c", ByteString(script), file]).check(timeout: 30)
    }

    @Test("property lists of any format are texts", .timeLimit(.minutes(1)))
    func text() throws {
      let fixture = try Fixture()
      try writeBinary(
        fixture.main / "Info.plist", "{'b': [1, 2.5, True, b'\\x01\\xff'], 'a': '<&>', 'c': {}}")
      try (fixture.substitution / "Info.plist").write("<plist version=\"1.0\"><dict/></plist>\n")
      try (fixture.main / "bad.plist").write("bplist00")
      try withMount(fixture.setup) { mount in
        let server = try PageServer(mount)
        let below = try server.json("/api/mounts/0/text?path=Info.plist&layer=1")
        #expect(below["format"]?.string == "binary")
        let lines = (below["text"]?.string ?? "").split(separator: "\n").dropFirst(3)
        let expected = [
          "<dict>", "\t<key>a</key>", "\t<string>&lt;&amp;&gt;</string>", "\t<key>b</key>", "\t<array>",
          "\t\t<integer>1</integer>", "\t\t<real>2.5</real>", "\t\t<true/>", "\t\t<data>01ff</data>",
          "\t</array>",
          "\t<key>c</key>", "\t<dict/>", "</dict>", "</plist>",
        ]
        #expect(lines.map { String($0) } == expected)
        let top = try server.json("/api/mounts/0/text?path=Info.plist&layer=0")
        #expect(
          top["text"]?.string == "<plist version=\"1.0\"><dict/></plist>\n" && top["format"]?.string == "xml")
        #expect(try server.client.get("/api/mounts/0/text?path=bad.plist&layer=1").status == 422)
        #expect(try server.client.get("/api/mounts/0/text?path=none.plist&layer=1").status == 404)
        #expect(try server.client.get("/api/mounts/0/text?path=Info.plist").status == 400)
        #expect(try server.client.get("/api/mounts/0/text?path=../x&layer=1").status == 400)
        #expect(try server.interrupt().status == 0)
      }
    }

    @Test(
      "the last results are listed, with the types of their values and without commands",
      .timeLimit(.minutes(1)))
    func results() throws {
      let fixture = try Fixture()
      try withMount(fixture.setup) { mount in
        try mount.writeControl("route Thing l:(thing)K/i:Count/f:Weight/s:Name\nthing://thing/3/3/x\n")
        let server = try PageServer(mount)
        guard case .array(let results) = try server.json("/api/mounts/0/results")["results"] else {
          throw TestFailure("no array")
        }
        let result = try #require(results.last)
        #expect(
          result["types"]?["Count"]?.string == "integer" && result["types"]?["Weight"]?.string == "number")
        #expect(result["types"]?["Name"]?.string == "text" && result["userInfo"]?["Count"]?.int == 3)
        #expect(try server.client.post("/api/mounts/0/override", #"{"paths":["plain.txt"]}"#).status == 200)
        _ = try server.edit("layers", #"{"layers":[]}"#)
        guard case .array(let again) = try server.json("/api/mounts/0/results")["results"] else {
          throw TestFailure("no array")
        }
        #expect(again == results)
        #expect(try server.interrupt().status == 0)
      }
    }

    @Test("a change below the winner is reported once the path is shown", .timeLimit(.minutes(1)))
    func versions() throws {
      let fixture = try Fixture()
      try withMount(fixture.setup) { mount in
        let server = try PageServer(mount)
        let connection = try server.events()
        _ = try server.json("/api/mounts/0/versions?path=replaced.txt")
        var number = 0
        try connection.read(
          until: "event: version",
          acting: {
            number += 1
            try (fixture.main / "replaced.txt").write("below \(number)\n")
          })
        // Of a directory that comes later, too.
        _ = try server.json("/api/mounts/0/versions?path=late/deep/new.txt")
        try (fixture.main / "late/deep").makeDirectories()
        try (fixture.main / "late/deep/new.txt").write("new\n")
        #expect(try connection.read(until: "late/deep/new.txt").contains("event: version"))
        #expect(try server.interrupt().status == 0)
      }
    }

    @Test("a path is watched in its layers alone, with what hides it there", .timeLimit(.minutes(1)))
    func watchedPaths() throws {
      let fixture = try Fixture()
      let outside = try fixture.folder.folder("outside")
      try (outside / "x.txt").write("outside")
      try (fixture.main / "away").makeLink(to: outside)
      try (fixture.main / "folder").makeDirectories()
      try withMount(fixture.setup) { mount in
        let server = try PageServer(mount)
        let connection = try server.events()
        _ = try server.json("/api/mounts/0/versions?path=away/x.txt")
        _ = try server.json("/api/mounts/0/versions?path=folder/y.txt")
        try (outside / "x.txt").write("changed")
        try (fixture.main / "folder/.wh.y.txt").write("")
        let events = try connection.read(until: "event: version")
        #expect(events.contains("folder/y.txt") && !events.contains("x.txt"), "\(events)")
        #expect(try server.interrupt().status == 0)
      }
    }

    @Test("long texts of property lists are cut", .timeLimit(.minutes(1)))
    func longText() throws {
      let fixture = try Fixture()
      try writeBinary(fixture.main / "long.plist", "{'a': '&' * (3 << 20)}")
      try writeBinary(fixture.main / "many.plist", "{'a': ['x' * 9999] * 5000}")
      try (fixture.main / "text.plist").write(String(repeating: "é", count: 1 << 20))
      try withMount(fixture.setup) { mount in
        let server = try PageServer(mount)
        for name in ["long", "many", "text"] {
          let answer = try server.json("/api/mounts/0/text?path=\(name).plist&layer=1")
          let length = answer["text"]?.string?.utf8.count ?? 0
          #expect(length > 1_000_000 && length < (1 << 20) + 3, "\(name): \(length)")
          #expect(answer["cut"] == .boolean(true))
        }
        #expect(try server.interrupt().status == 0)
      }
    }

    @Test(
      "a version below the winner, a binary property list and old results in the page",
      .enabled(if: Browser.program != nil), .timeLimit(.minutes(4)))
    func page() throws {
      let shown = try ShownMount(["top"]) { main, layers in
        try writeBinary(main / "Info.plist", "{'Name': 'main', 'Same': 1}")
        try writeBinary(layers[0] / "Info.plist", "{'Name': 'top', 'Same': 1}")
        for folder in [main] + layers { try (folder / "a.txt").write("first\n") }
      }
      let page = shown.page
      try shown.select("Info.plist")
      try page.wait("document.querySelectorAll('.lines .is-plus').length === 1")
      let changes = try page.texts(
        "[...document.querySelectorAll('.lines :is(.is-minus, .is-plus) .line-text')].map(n => n.textContent.trim())"
      )
      #expect(changes == ["<string>main</string>", "<string>top</string>"])
      try shown.select("a.txt")
      try page.wait("document.querySelector('.comparison-body')?.textContent.includes('same lines')")
      try (shown.main / "a.txt").write("changed below\n")
      try page.wait("document.querySelector('.lines .is-minus')?.textContent.includes('changed below')")
      try (shown.main / "a.txt").remove()
      try page.wait("document.querySelectorAll('.versions > li').length === 1")

      try shown.mount.writeControl("route Thing l:(thing)K/i:Count/f:Weight\nthing://thing/3/3\n")
      try page.wait("document.querySelectorAll('.result').length === 1")
      try page.load(shown.address)
      try page.wait(ShownMount.isLoaded)
      try page.click("nav [data-view=activity]")
      try page.wait("document.querySelectorAll('.result').length === 1")
      let types = try page.texts("[...document.querySelectorAll('.result dd .type')].map(n => n.textContent)")
      #expect(Set(types) == ["text", "integer", "number"], "\(types)")
      try shown.end()
    }
  }
}
