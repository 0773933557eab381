import Posix
import Routing
import TestSupport
import Testing

/// What the page is shown of a mount.
extension MountTests {
  @Suite struct PageContentTests {
    @Test("mounts, status, layers and tree are what the commands print", .timeLimit(.minutes(1)))
    func asCommands() throws {
      let (fixture, other) = (try Fixture(), try Fixture())
      try withMount(fixture.setup) { mount in
        try withMount(other.setup("writable")) { second in
          let server = try PageServer(mount, second)
          guard case .array(let mounts) = try server.json("/api/mounts") else { return #expect(Bool(false)) }
          #expect(mounts.map { $0["mountPoint"]?.string } == [mount.point.text, second.point.text])
          #expect(mounts.map { $0["writable"] } == [.boolean(false), .boolean(true)])
          let binary = try Binary.underTest()
          for (word, options) in [("layers", ["--count"]), ("tree", [])] as [(ByteString, [ByteString])] {
            let command = Command([binary, word, mount.point] + options + ["--json"])
            let printed = try command.check().output
            #expect(try server.json("/api/mounts/0/\(word)") == JSONValue(printed))
          }
          #expect(try server.json("/api/mounts/1/status")["layers"] != nil)
          guard case .array(let entries) = try server.json("/api/mounts/0/tree?path=folder")["entries"] else {
            return #expect(Bool(false))
          }
          #expect(
            entries.compactMap { $0["path"]?.string } == [
              "folder", "folder/added.txt", "folder/both.txt", "folder/inner.txt",
            ])
          #expect(try server.json("/api/mounts/0/tree?path=none/none")["entries"] == .array([]))
        }
      }
    }

    @Test("the versions of a file are those of all layers, archives as well", .timeLimit(.minutes(1)))
    func versions() throws {
      let fixture = try Fixture()
      let archive = fixture.folder / "mod.zip"
      let zip = ZipBuilder([.init("replaced.txt", "zipped", .deflated), .init("folder/zipped.txt", "z")])
      try archive.write(zip.bytes)
      try (fixture.substitution / "link").makeLink(to: "/etc/passwd")
      try (fixture.substitution / ".wh.plain.txt").write("")
      var setup = fixture.setup
      setup.substitutions.append(archive)
      try withMount(setup) { mount in
        let server = try PageServer(mount)
        let versions = { (path: String) in
          guard case .array(let found) = try server.json("/api/mounts/0/versions?path=\(path)")["versions"]
          else {
            throw TestFailure("no versions")
          }
          return found
        }
        let replaced = try versions("replaced.txt")
        #expect(replaced.compactMap { $0["layer"]?.int } == [0, 1, 2])
        #expect(replaced.map { $0["winner"] } == [.boolean(true), .boolean(false), .boolean(false)])
        let contents = try replaced.map { try server.client.get($0["content"]?.string ?? "").text }
        #expect(contents == ["substitution's replaced, longer\n", "zipped", "main's replaced\n"])
        let link = try versions("link")
        #expect(link.map { $0["target"]?.string } == ["/etc/passwd", "plain.txt"])
        #expect(link.allSatisfy { $0["content"] == .null })
        #expect(try versions("plain.txt").map { $0["kind"]?.string } == ["hidden", "file"])
        #expect(try versions("none") == [])
        #expect(try server.client.get("/content/0/view/folder/zipped.txt").text == "z")
        #expect(try server.client.get("/content/0/view/plain.txt").status == 404)
        #expect(try server.client.get("/content/0/2/plain.txt").text == "main's plain\n")
      }
    }

    @Test("content is sent in a sandbox, in parts, and as no code", .timeLimit(.minutes(1)))
    func content() throws {
      let fixture = try Fixture()
      try (fixture.substitution / "page.html").write("<script>alert(1)</script>")
      try (fixture.substitution / "picture.svg").write("<svg onload='alert(1)'/>")
      try (fixture.substitution / "code.js").write("alert(1)")
      try (fixture.substitution / "digits").write("0123456789")
      try (fixture.substitution / "empty").write("")
      try withMount(fixture.setup) { mount in
        let server = try PageServer(mount)
        let client = server.client
        for name in ["page.html", "picture.svg", "code.js", "digits"] {
          let reply = try client.get("/content/0/0/\(name)")
          let policy = reply.headers["content-security-policy"] ?? ""
          #expect(policy.hasPrefix("sandbox; default-src 'none';"), "\(name)")
          #expect(!policy.contains("allow-scripts"))
          #expect(reply.headers["x-content-type-options"] == "nosniff")
          #expect(reply.headers["cross-origin-resource-policy"] == "same-origin")
        }
        #expect(try client.get("/content/0/0/code.js").headers["content-type"] == "text/plain; charset=utf-8")
        let page = try client.get("/index.html")
        #expect(
          page.headers["content-security-policy"]?.hasPrefix("default-src 'none'; script-src 'self';") == true
        )
        #expect(page.headers["referrer-policy"] == "no-referrer")

        let part = { (range: String) in
          try client.send("GET", "/content/0/0/digits", client.usual + [("Range", range)])
        }
        for (range, text) in ["bytes=2-4": "234", "bytes=7-": "789", "bytes=-2": "89", "bytes=8-99": "89"] {
          let reply = try part(range)
          #expect(reply.status == 206 && reply.text == text, "\(range): \(reply.text)")
        }
        #expect(try part("bytes=2-4").headers["content-range"] == "bytes 2-4/10")
        #expect(try part("bytes=10-").status == 416)
        #expect(try part("bytes=-0").status == 416)
        for range in ["bytes=4-2", "bytes=1-2,4-5", "lines=1-2", "bytes=x-", "bytes=-"] {
          #expect(try part(range).text == "0123456789", "\(range)")
        }
        let head = try client.send("HEAD", "/content/0/0/digits")
        #expect(head.status == 200 && head.body == [] && head.headers["content-length"] == "10")
        #expect(try client.get("/content/0/0/empty").status == 200)
        #expect(try client.get("/content/0/0/folder").status == 404)
      }
    }

    @Test(
      "names that would be markup, and names of any bytes, come back as they are", .timeLimit(.minutes(1)))
    func names() throws {
      let fixture = try Fixture(isFilled: false)
      let names: [ByteString] = [
        "<img src=x onerror=alert(1)>", "\"><script>", "a&b\u{2028}c", ByteString([0x62, 0xFF, 0x0A, 0x63]),
        "{{x}}", "%2e%2e", "a\\b",
      ]
      for name in names { try (fixture.main / name).write("content of \(name.bytes)") }
      try withMount(fixture.setup) { mount in
        let server = try PageServer(mount)
        let reply = try server.client.get("/api/mounts/0/tree")
        #expect(reply.headers["content-type"] == "application/json")
        guard case .array(let entries) = JSONValue(reply.body)?["entries"] else {
          return #expect(Bool(false), "\(reply.text)")
        }
        #expect(entries.count == names.count)
        for name in names {
          let path = PercentCoding.encoded(path: name.bytes)
          #expect(try server.client.get("/content/0/view/\(path)").text == "content of \(name.bytes)")
          _ = try server.undo(try server.edit("override", "{\"encodedPaths\":[\"\(path)\"]}"))
        }
      }
    }
  }
}
