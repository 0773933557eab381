import Glibc
import Posix
import Routing
import TestSupport
import Testing

/// No edit, failure or undo loses what other programs have made.
extension MountTests {
  @Suite struct PageLossTests {
    @Test("a folder that was changed since is not undone", .timeLimit(.minutes(1)), arguments: [0, 1, 2])
    func changedFolder(change: Int) throws {
      let fixture = try Fixture()
      try withMount(fixture.setup) { mount in
        let server = try PageServer(mount)
        let only = fixture.substitution / "only"
        let id = try server.edit("override", #"{"paths":["only/deep/file.txt"]}"#)
        switch change {
        case 0: try (only / "deep/file.txt").write("edited by hand")
        case 1: try (only / "mine.txt").write("mine")
        default: try (only / "deep/file.txt").remove()
        }
        let picture = try LayerPicture(of: fixture.substitution)
        let reply = try server.client.post("/api/mounts/0/undo", "{\"undo\":\"\(id)\"}")
        #expect(reply.status == 409 && reply.text.contains("has been changed since"), "\(reply.text)")
        #expect(try LayerPicture(of: fixture.substitution) == picture)
        #expect(try server.interrupt().status == 0)
        #expect(try LayerPicture(of: fixture.substitution) == picture)
      }
    }

    @Test("an override that fails takes away only what it has made", .timeLimit(.minutes(2)))
    func failedOverride() throws {
      let fixture = try Fixture()
      let disk = try fixture.folder.folder("disk")
      try Command("mount", "-t", "tmpfs", "-o", "nr_inodes=1500", "none", disk.text).check()
      defer { _ = try? Command("umount", disk.text).run() }
      try (fixture.main / "big").makeDirectory()
      for number in 0..<2500 { try (fixture.main / "big" / ByteString("m\(number)")).write("") }
      var setup = fixture.setup
      setup.substitutions = [disk]
      try withMount(setup) { mount in
        let server = try PageServer(mount)
        let writer = FileWriter(in: disk / "big")
        let reply = try server.client.post("/api/mounts/0/override", #"{"paths":["big"]}"#)
        let made = writer.end()
        #expect(reply.status == 409, "\(reply.text)")
        #expect(!made.isEmpty)
        #expect(try Set((disk / "big").names()) == Set(made))
        #expect(try server.interrupt().status == 0)
        #expect(try Set((disk / "big").names()) == Set(made))
      }
    }

    @Test("without free inodes, nothing is left of an edit, and undoing works", .timeLimit(.minutes(1)))
    func noInodes() throws {
      let fixture = try Fixture()
      let disk = try fixture.folder.folder("disk")
      try Command("mount", "-t", "tmpfs", "-o", "nr_inodes=40", "none", disk.text).check()
      defer { _ = try? Command("umount", disk.text).run() }
      try (disk / "folder").makeDirectory()
      try (disk / "replaced.txt").write("disk's replaced")
      var setup = fixture.setup
      setup.substitutions = [disk]
      try withMount(setup) { mount in
        let server = try PageServer(mount)
        let id = try server.edit("revert", #"{"paths":["replaced.txt"]}"#)
        var number = 0
        while (try? (disk / ByteString("filler\(number)")).write("")) != nil { number += 1 }
        try? (disk / ByteString("filler\(number)")).remove()
        let picture = try LayerPicture(of: disk)
        for (word, path) in [
          ("override", "folder/inner.txt"), ("override", "plain.txt"), ("override", "only"),
          ("hide", "folder/inner.txt"),
        ] {
          let reply = try server.client.post("/api/mounts/0/\(word)", "{\"paths\":[\"\(path)\"]}")
          if word == "hide", reply.status == 200 {
            _ = try server.undo(JSONValue(reply.body)?["undo"]?.string ?? "")
          } else {
            #expect(reply.status == 409 || reply.status == 507, "\(word) \(path): \(reply.text)")
            #expect(reply.text.contains("space"), "\(word) \(path): \(reply.text)")
          }
          #expect(try LayerPicture(of: disk) == picture, "\(word) \(path)")
        }
        let reply = try server.client.put("/content/0/top/folder/new.txt", [1])
        #expect(reply.status == 507, "\(reply.text)")
        #expect(try LayerPicture(of: disk) == picture)
        _ = try server.undo(id)
        #expect(try (disk / "replaced.txt").readText() == "disk's replaced")
        #expect(try server.interrupt().status == 0)
      }
    }

    /// Makes a file after the other in a folder, as soon as there is one.
    private final class FileWriter: Sendable {
      private let state = Locked<(isEnded: Bool, made: [ByteString])>((false, []))
      private let thread: Locked<pthread_t?> = Locked(nil)

      init(in folder: ByteString) {
        var thread = pthread_t()
        let state = state
        let body = Body {
          var number = 0
          while !state.withLock({ $0.isEnded }), number < 300 {
            usleep(500)
            let name = ByteString("mine\(number)")
            guard (try? (folder / name).write("mine")) != nil else { continue }
            number += 1
            state.withLock { $0.made.append(name) }
          }
        }
        let box = Unmanaged.passRetained(body).toOpaque()
        pthread_create(
          &thread, nil,
          { box in
            if let box { Unmanaged<Body>.fromOpaque(box).takeRetainedValue().run() }
            return nil
          }, box)
        self.thread.withLock { $0 = thread }
      }

      private final class Body {
        let run: () -> Void
        init(_ run: @escaping () -> Void) { self.run = run }
      }

      /// - Returns: the names of the files.
      func end() -> [ByteString] {
        state.withLock { $0.isEnded = true }
        if let thread = thread.withLock({ $0 }) { pthread_join(thread, nil) }
        return state.withLock { $0.made }
      }
    }

    @Test("a revert that fails at another spelling puts back the first", .timeLimit(.minutes(1)))
    func failedSpelling() throws {
      let fixture = try Fixture()
      for name in ["A.txt", "a.txt"] as [ByteString] { try (fixture.substitution / name).write(name.text) }
      try withMount(fixture.setup("case=insensitive")) { mount in
        let server = try PageServer(mount)
        let busy = (fixture.substitution / "a.txt").text
        let before = try LayerPicture(of: fixture.substitution)
        try Command("mount", "--bind", busy, busy).check()
        let reply = try server.client.post("/api/mounts/0/revert", #"{"paths":["replaced.txt","a.txt"]}"#)
        try Command("umount", busy).check()
        #expect(reply.status == 409, "\(reply.text)")
        #expect(try LayerPicture(of: fixture.substitution) == before)
        #expect(try server.interrupt().status == 0)
        #expect(try LayerPicture(of: fixture.substitution) == before)
      }
    }

    @Test("a table keeps its encoding, and a property list what is no string", .timeLimit(.minutes(1)))
    func tableFormats() throws {
      let fixture = try Fixture()
      let (wide, list) = (fixture.substitution / "wide.strings", fixture.substitution / "list.strings")
      let wideText: (String) -> [UInt8] = { text in
        [0xFF, 0xFE]
          + text.utf16.flatMap { (unit: UInt16) -> [UInt8] in
            [UInt8(unit & 0xFF), UInt8(unit >> 8)]
          }
      }
      try wide.write(wideText("\"a\" = \"A\";\n"))
      let content =
        "<plist><dict><key>a</key><string>A</string><key>n</key><integer>7</integer></dict></plist>"
      try list.write(content)
      try withMount(fixture.setup) { mount in
        let server = try PageServer(mount)
        _ = try server.edit("strings", #"{"path":"wide.strings","key":"a","value":"B"}"#)
        #expect(try wide.read() == wideText("\"a\" = \"B\";\n"))
        let set = #"{"path":"list.strings","key":"a","value":"B"}"#
        let reply = try server.client.post("/api/mounts/0/strings", set)
        #expect(reply.status == 422, "\(reply.text)")
        #expect(try list.readText() == content)
      }
    }

    @Test(
      "layers that were changed since are not set back", .timeLimit(.minutes(1)),
      .enabled(if: Mount.hasControl))
    func changedLayers() throws {
      let fixture = try Fixture()
      let (one, two) = (try fixture.folder.folder("one"), try fixture.folder.folder("two"))
      try (two / "plain.txt").write("two's plain")
      try withMount(fixture.setup) { mount in
        let server = try PageServer(mount)
        let id = try server.edit("layers", "{\"layers\":[\(JSONWriter.quoted(one.text))]}")
        try Command([try Binary.underTest(), "layers", mount.point, "add", two]).check()
        #expect(try (mount.point / "plain.txt").readText() == "two's plain")
        let reply = try server.client.post("/api/mounts/0/undo", "{\"undo\":\"\(id)\"}")
        #expect(reply.status == 409 && reply.text.contains("changed since"), "\(reply.text)")
        #expect(try (mount.point / "plain.txt").readText() == "two's plain")
      }
    }

    @Test("the edits that can be undone are listed", .timeLimit(.minutes(1)))
    func list() throws {
      let fixture = try Fixture()
      try withMount(fixture.setup) { mount in
        let server = try PageServer(mount)
        let ids = { () throws -> [String?] in
          guard case .array(let edits) = try server.json("/api/mounts/0/edits") else {
            throw TestFailure("no edits")
          }
          return edits.map { $0["undo"]?.string }
        }
        #expect(try ids() == [])
        let one = try server.edit("revert", #"{"paths":["replaced.txt"]}"#)
        let two = try server.edit("hide", #"{"paths":["plain.txt"]}"#)
        #expect(try ids() == [one, two])
        _ = try server.undo(two)
        #expect(try ids() == [one])
      }
    }

    @Test(
      "a file that is dropped on another spelling takes its place", .timeLimit(.minutes(1)),
      arguments: [true, false])
    func spelling(isTop: Bool) throws {
      let fixture = try Fixture()
      try ((isTop ? fixture.substitution : fixture.main) / "logo.png").write("old")
      try withMount(fixture.setup("case=insensitive")) { mount in
        let server = try PageServer(mount)
        let before = try LayerPicture(of: fixture.substitution)
        let id = try server.upload("LOGO.png", "new")
        #expect(
          try fixture.substitution.names().filter { $0.text.lowercased() == "logo.png" } == ["logo.png"])
        #expect(try (mount.point / "logo.png").readText() == "new")
        _ = try server.undo(id)
        #expect(try LayerPicture(of: fixture.substitution) == before)
      }
    }
  }
}
