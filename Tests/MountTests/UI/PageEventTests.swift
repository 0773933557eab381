import Glibc
import Posix
import TestSupport
import Testing

/// What changes is reported to the page.
extension MountTests {
  @Suite struct PageEventTests {
    @Test("changes of files, layers and results of routes arrive, at two pages", .timeLimit(.minutes(2)))
    func live() throws {
      let fixture = try Fixture()
      try withMount(fixture.setup) { mount in
        let server = try PageServer(mount)
        let streams = [try server.events(), try server.events()]
        // What changes before the watches are set is not reported.
        for (index, stream) in streams.enumerated() {
          var number = 0
          try stream.read(
            until: "folder/first.txt",
            acting: {
              number += 1
              try (fixture.main / "folder/first.txt").replace("\(index) \(number)")
            })
        }
        try (fixture.substitution / "folder/live.txt").write("live")
        for stream in streams {
          #expect(try stream.read(until: "folder/live.txt").contains("event: change"))
        }
        if Mount.hasControl {
          _ = try server.edit("layers", #"{"layers":[]}"#)
          for stream in streams { #expect(try stream.read(until: "event: layers").contains("data: {}")) }
          #expect(try server.client.post("/api/mounts/0/routes", #"{"url":"none:x"}"#).status == 200)
          for stream in streams { #expect(try stream.read(until: "none:x").contains("event: route")) }
          #expect(try server.client.post("/api/mounts/0/routes", #"{"url":"reset"}"#).status == 400)
        }
        #expect(try server.interrupt().status == 0)
        for stream in streams { _ = try stream.readToEnd() }
      }
    }

    @Test("an unmount ends the stream, and a page keeps no mount busy", .timeLimit(.minutes(1)))
    func unmount() throws {
      let fixture = try Fixture()
      let mount = try Mount(fixture.setup)
      defer { mount.abandon() }
      let server = try PageServer(mount)
      let connection = try server.events()
      #expect(try server.client.get("/api/mounts/0/tree").status == 200)
      // The command waits a second for the page to let go of the control file.
      let command = Command([try Binary.underTest(), "unmount", mount.point])
      #expect(eventually(within: 30) { (try? command.run(timeout: 20))?.status == 0 })
      try mount.waitForEnd()
      #expect(try connection.read(until: "event: ended").contains("event: ended"))
      #expect(try server.client.get("/api/mounts/0/tree").status == 409)
      #expect(try server.interrupt().status == 0)
    }

    @Test("a page that reads nothing holds nothing up", .timeLimit(.minutes(2)))
    func slowPage() throws {
      let fixture = try Fixture()
      try (fixture.main / "big").write([UInt8](repeating: 7, count: 32 << 20))
      try withMount(fixture.setup) { mount in
        let server = try PageServer(mount)
        let slow = try (0..<8).map { _ in try PageConnection(server.client.port) }
        for connection in slow {
          try connection.send("GET", server.client.address("/content/0/view/big"), server.client.usual, [])
        }
        #expect(try (mount.point / "plain.txt").readText() == "main's plain\n")
        #expect(try server.client.get("/api/mounts/0/status").status == 200)
        #expect(try server.interrupt().status == 0)
        withExtendedLifetime(slow) {}
      }
    }
  }
}
