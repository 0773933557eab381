import Glibc
import Posix
import Routing
import TestSupport
import Testing

/// Files are swapped by the page, and nothing is lost by a click.
extension MountTests {
  @Suite struct PageEditTests {
    @Test(
      "an edit shows at once, and undoing it brings back bytes and metadata", .timeLimit(.minutes(2)),
      arguments: [[], ["writable"], ["writable", "whiteouts=markers"]] as [[ByteString]])
    func edits(options: [ByteString]) throws {
      let fixture = try Fixture()
      var setup = fixture.setup
      setup.options = options
      try withMount(setup) { mount in
        let server = try PageServer(mount)
        let before = try LayerPicture(of: fixture.substitution)
        let replaced = mount.point / "replaced.txt"

        try check(server, fixture, before, "override", try server.edit("override", #"{"paths":["only"]}"#)) {
          () throws in
          #expect(try (fixture.substitution / "only/deep/file.txt").readText() == "deep\n")
        }
        try check(server, fixture, before, "part", try server.edit("override", #"{"paths":["folder"]}"#)) {
          () throws in
          #expect(try (fixture.substitution / "folder").names() == ["added.txt", "both.txt", "inner.txt"])
        }
        try check(
          server, fixture, before, "revert", try server.edit("revert", #"{"paths":["replaced.txt"]}"#)
        ) { () throws in
          #expect(try replaced.readText() == "main's replaced\n")
        }
        try check(server, fixture, before, "all", try server.edit("revert", #"{"paths":["folder"]}"#)) {
          () throws in
          #expect(try (mount.point / "folder").names() == ["both.txt", "inner.txt"])
        }
        let hidden = #"{"paths":["replaced.txt","only/deep","folder"]}"#
        try check(server, fixture, before, "hide", try server.edit("hide", hidden)) { () throws in
          #expect(try mount.point.names() == ["link", "only", "plain.txt"])
          #expect(try (mount.point / "only").names() == [])
        }
        try check(server, fixture, before, "replace", try server.upload("replaced.txt", "new")) { () throws in
          #expect(try replaced.readText() == "new")
        }
        try check(server, fixture, before, "add", try server.upload("only/deep/new.txt", "new")) {
          () throws in
          #expect(try (mount.point / "only/deep").names() == ["file.txt", "new.txt"])
        }
        try check(server, fixture, before, "link", try server.upload("link", "a file")) { () throws in
          #expect(try (mount.point / "link").readText() == "a file")
        }
      }
    }

    /// Checks that an edit is seen, can be undone, made again, and undone again.
    private func check(
      _ server: PageServer, _ fixture: Fixture, _ before: LayerPicture, _ name: Comment, _ id: String,
      _ isSeen: () throws -> Void
    ) throws {
      try isSeen()
      let after = try LayerPicture(of: fixture.substitution)
      let again = try server.undo(id)
      let undone = try LayerPicture(of: fixture.substitution)
      #expect(undone == before, "\(name): \(undone.differences(from: before))")
      let last = try server.undo(again)
      try isSeen()
      let redone = try LayerPicture(of: fixture.substitution)
      #expect(redone == after, "\(name): \(redone.differences(from: after))")
      _ = try server.undo(last)
      let end = try LayerPicture(of: fixture.substitution)
      #expect(end == before, "\(name): \(end.differences(from: before))")
    }

    @Test(
      "random edits, undone in reverse order, leave the layer as it was", .timeLimit(.minutes(5)),
      arguments: Seeds.chosen(TestLength.steps(full: 12, brief: 4)))
    func model(seed: UInt64) throws {
      let fixture = try Fixture()
      if seed % 2 == 1 { try (fixture.substitution / ".wh.none").write("") }
      var random = SplitMix64(seed: seed)
      try withMount(fixture.setup) { mount in
        let server = try PageServer(mount)
        var pictures = [try LayerPicture(of: fixture.substitution)]
        var undoable: [(id: String, what: String)] = []
        let paths = [
          "plain.txt", "replaced.txt", "folder", "folder/inner.txt", "folder/both.txt", "folder/added.txt",
          "only", "only/deep", "only/deep/file.txt", "link", "new", "folder/new",
        ]
        for step in 0..<25 {
          let (path, word) = (paths[random.number(0...11)], random.number(0...3))
          let reply =
            word == 3
            ? try server.client.put("/content/0/top/\(path)", Array("upload \(step)".utf8))
            : try server.client.post(
              "/api/mounts/0/\(["override", "revert", "hide"][word])", "{\"paths\":[\"\(path)\"]}")
          let what = "\(step): \(word) \(path)"
          #expect([200, 409].contains(reply.status), "\(what): \(reply.text)")
          let picture = try LayerPicture(of: fixture.substitution)
          if let id = JSONValue(reply.body)?["undo"]?.string {
            undoable.append((id, what))
            pictures.append(picture)
          } else if let last = pictures.last {
            #expect(picture == last, "seed \(seed), refused \(what): \(picture.differences(from: last))")
          }
        }
        #expect(undoable.count > 5)
        while let (id, what) = undoable.popLast() {
          pictures.removeLast()
          _ = try server.undo(id)
          let picture = try LayerPicture(of: fixture.substitution)
          guard let expected = pictures.last, picture != expected else { continue }
          Issue.record("seed \(seed), undoing \(what): \(picture.differences(from: expected))")
          return
        }
        #expect(try server.interrupt().status == 0)
        #expect(try fixture.substitution.names().filter { $0.text.contains("bundlefs-work") } == [])
      }
    }

    @Test("an upload that does not come to its end, or has no room, changes nothing", .timeLimit(.minutes(1)))
    func partialUpload() throws {
      let fixture = try Fixture()
      let disk = try fixture.folder.folder("disk")
      try Command("mount", "-t", "tmpfs", "-o", "size=4m", "none", disk.text).check()
      defer { _ = try? Command("umount", disk.text).run() }
      try (disk / "replaced.txt").write("old")
      var setup = fixture.setup
      setup.substitutions = [disk]
      try withMount(setup) { mount in
        let server = try PageServer(mount)
        let client = server.client
        let before = try LayerPicture(of: disk)
        let headers = client.changing("application/octet-stream")
        let half = [UInt8](repeating: 1, count: 100_000)
        do {
          let connection = try PageConnection(client.port)
          try connection.send(
            "PUT", server.client.address("/content/0/top/replaced.txt"), headers, half, length: 200_000)
          #expect(eventually(within: 10) { (try? (disk / ".wh..wh.bundlefs-work").names().isEmpty) == false })
        }
        #expect(eventually(within: 20) { (try? disk.names()) == ["replaced.txt"] })
        #expect(
          try client.put("/content/0/top/replaced.txt", [UInt8](repeating: 1, count: 8 << 20)).status == 507)
        #expect(try LayerPicture(of: disk) == before)
        #expect(try client.put("/content/0/top/none/file", [1]).status == 409)
        #expect(try disk.names().filter { $0 != ".wh..wh.bundlefs-work" } == ["replaced.txt"])
        #expect(try server.interrupt().status == 0)
        #expect(try disk.names() == ["replaced.txt"])
      }
    }

    @Test("what was changed since is not undone", .timeLimit(.minutes(1)))
    func conflicts() throws {
      let fixture = try Fixture()
      try withMount(fixture.setup) { mount in
        let server = try PageServer(mount)
        let first = try server.upload("replaced.txt", "first")
        let second = try server.upload("replaced.txt", "second")
        let early = try server.client.post("/api/mounts/0/undo", "{\"undo\":\"\(first)\"}")
        #expect(early.status == 409 && early.text.contains("which came later"), "\(early.text)")
        try (fixture.substitution / "replaced.txt").write("edited by hand")
        let late = try server.client.post("/api/mounts/0/undo", "{\"undo\":\"\(second)\"}")
        #expect(late.status == 409 && late.text.contains("has been changed since"), "\(late.text)")
        #expect(try (fixture.substitution / "replaced.txt").readText() == "edited by hand")
        for id in ["77", "x"] {
          #expect(try server.client.post("/api/mounts/0/undo", "{\"undo\":\"\(id)\"}").status >= 400)
        }
      }
    }

    @Test("the layers are set and set back", .timeLimit(.minutes(1)), .enabled(if: Mount.hasControl))
    func layers() throws {
      let fixture = try Fixture()
      let extra = try fixture.folder.folder("extra")
      try (extra / "plain.txt").write("extra's plain")
      try withMount(fixture.setup) { mount in
        let server = try PageServer(mount)
        let set = "{\"layers\":[\(JSONWriter.quoted(extra.text))]}"
        let id = try server.edit("layers", set)
        #expect(try (mount.point / "plain.txt").readText() == "extra's plain")
        #expect(try (mount.point / "replaced.txt").readText() == "main's replaced\n")
        _ = try server.undo(id)
        #expect(try (mount.point / "replaced.txt").readText() == "substitution's replaced, longer\n")
        for layers in [#"["relative"]"#, #"["/nowhere"]"#, "1"] {
          #expect(try server.client.post("/api/mounts/0/layers", "{\"layers\":\(layers)}").status >= 400)
        }
      }
    }

    @Test(
      "a key of a table is set in the top layer's, and set back", .timeLimit(.minutes(1)),
      arguments: ["merge", "override"] as [ByteString])
    func strings(option: ByteString) throws {
      let fixture = try Fixture()
      let (main, top) = (fixture.main / "a.strings", fixture.substitution / "a.strings")
      try main.write("/* greets */ \"hello\" = \"Hello\";\n\"bye\" = \"Bye\";\n")
      try withMount(fixture.setup("strings=" + option)) { mount in
        let server = try PageServer(mount)
        let set = #"{"path":"a.strings","key":"bye","value":"So \"long\""}"#
        let id = try server.edit("strings", set)
        let text = try top.readText()
        #expect(text.contains(#""bye" = "So \"long\"";"#), "\(text)")
        #expect(text.contains("Hello") == (option == "override"), "\(text)")
        let table = try server.json("/api/mounts/0/strings?path=a.strings")
        #expect(table["merged"] == .boolean(option == "merge"))
        guard case .array(let keys) = table["keys"] else { throw TestFailure("no keys") }
        let bye = keys.first { $0["key"]?.string == "bye" }
        guard case .array(let values) = bye?["values"] else { throw TestFailure("no values") }
        #expect(values.map { $0["layer"]?.int } == [0, 1])
        #expect(values.map { $0["value"]?.string } == ["So \"long\"", "Bye"])
        _ = try server.undo(id)
        #expect(!top.exists)
        try top.write("{ not a table")
        #expect(try server.client.post("/api/mounts/0/strings", set).status == 422)
        #expect(try top.readText() == "{ not a table")
      }
    }

    @Test(
      "a key of a catalog is shown with the catalog's layer if tables are merged", .timeLimit(.minutes(1)))
    func catalogs() throws {
      let fixture = try Fixture()
      try (fixture.main / "fr.lproj").makeDirectory()
      try (fixture.main / "fr.lproj/a.strings").write("\"bye\" = \"Adieu\";\n")
      try (fixture.substitution / "a.xcstrings").write(
        #"{"strings": {"hello": {"localizations": {"fr": {"stringUnit": {"value": "Salut"}}}}}}"#)
      for option in ["merge", "override"] as [ByteString] {
        try withMount(fixture.setup("strings=" + option)) { mount in
          let server = try PageServer(mount)
          let table = try server.json("/api/mounts/0/strings?path=fr.lproj/a.strings")
          guard case .array(let keys) = table["keys"] else { throw TestFailure("no keys") }
          let shown = keys.map { key -> String in
            guard case .array(let values) = key["values"] else { return "none" }
            let texts = values.map { "\($0["layer"]?.int ?? -1) \($0["value"]?.string ?? "")" }
            return "\(key["key"]?.string ?? ""): \(texts)"
          }
          #expect(
            shown == (option == "merge" ? ["hello: [\"0 Salut\"]"] : []) + ["bye: [\"1 Adieu\"]"], "\(option)"
          )
        }
      }
    }

    @Test("two pages change one mount, and the end leaves nothing behind", .timeLimit(.minutes(1)))
    func twoServers() throws {
      let fixture = try Fixture()
      try withMount(fixture.setup) { mount in
        let (first, second) = (try PageServer(mount), try PageServer(mount))
        let one = try first.edit("revert", #"{"paths":["replaced.txt"]}"#)
        let other = try second.edit("revert", #"{"paths":["folder/both.txt"]}"#)
        #expect(try first.client.send("GET", "/api/mounts", second.client.usual).status == 403)
        _ = try first.undo(one)
        #expect(try first.interrupt().status == 0)
        _ = try second.undo(other)
        #expect(try (mount.point / "folder/both.txt").readText() == "substitution's both\n")
        second.process.signal(SIGTERM)
        #expect(try second.process.wait(timeout: 20).status == 0)
        #expect(try fixture.substitution.names() == ["folder", "replaced.txt"])
      }
    }
  }
}
