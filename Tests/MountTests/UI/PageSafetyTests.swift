import Glibc
import Posix
import Routing
import TestSupport
import Testing

/// `bundlefs ui` lets in only the user's browser, and only the page that it serves.
extension MountTests {
  @Suite struct PageSafetyTests {
    private func withServer(_ body: (Fixture, PageServer) throws -> Void) throws {
      let fixture = try Fixture()
      try withMount(fixture.setup) { mount in try body(fixture, PageServer(mount)) }
    }

    @Test("without the token or the cookie of this server there is no answer", .timeLimit(.minutes(1)))
    func token() throws {
      try withServer { _, server in
        let stranger = PageClient(port: server.client.port)
        // Another server of this host gets the cookie, and a history of the browser has the folder.
        var (neighbour, reader) = (server.client, server.client)
        (neighbour.folder, reader.cookie) = ("", nil)
        for client in [stranger, neighbour, reader] {
          for path in ["/index.html", "/app.js", "/api/mounts", "/content/0/view/plain.txt"] {
            #expect(try client.get(path).status == 403, "\(path)")
          }
        }
        for path in ["/", "/?token=", "/?token=0"] {
          let reply = try stranger.get(path)
          #expect(reply.status == 403, "\(path)")
          #expect(reply.headers["set-cookie"] == nil)
        }
        var forger = server.client
        forger.cookie = server.client.cookie.map { String($0.dropLast()) + "g" }
        #expect(try forger.get("/api/mounts").status == 403)
        forger = server.client
        forger.folder = forger.folder.dropLast() + "g"
        #expect(try forger.get("/api/mounts").status == 403)
        let token = server.address.split(separator: "=").last.map(String.init) ?? ""
        #expect(token.count == 64)
        #expect(try stranger.get("/api/mounts?token=\(token)").status == 403)
        let reply = server.entrance
        let (folder, cookie) = (server.client.folder, reply.headers["set-cookie"] ?? "")
        #expect(reply.status == 200 && folder.count == 65)
        #expect(cookie.hasSuffix("; HttpOnly; SameSite=Strict; Path=\(folder)"))
        #expect(reply.text.contains("content=\"0;url=\(folder)/index.html\""))
        #expect(!folder.contains(token) && server.client.cookie?.contains(token) == false)
        let again = try stranger.get("/?token=\(token)")
        #expect(again.status == 403 && again.text.contains("works once"))
        #expect(again.headers["set-cookie"] == nil)
        #expect(try server.client.get("/index.html").status == 200)
      }
    }

    @Test("names of other hosts, other pages and forms are refused", .timeLimit(.minutes(1)))
    func sources() throws {
      try withServer { fixture, server in
        let (client, port) = (server.client, server.client.port)
        let cookie = ("Cookie", client.cookie ?? "")
        for host in ["evil.example", "127.0.0.1", "127.0.0.1:1", "evil.example:\(port)", ""] {
          #expect(try client.send("GET", "/api/mounts", [("Host", host), cookie]).status >= 400, "\(host)")
        }
        #expect(try client.send("GET", "/api/mounts", [("Host", "localhost:\(port)"), cookie]).status == 200)
        for site in ["cross-site", "same-site"] {
          let headers = client.usual + [("Sec-Fetch-Site", site)]
          #expect(try client.send("GET", "/api/mounts", headers).status == 403)
        }
        let json = ("Content-Type", "application/json")
        let body = Array(#"{"paths":["replaced.txt"]}"#.utf8)
        let origin = "http://127.0.0.1:\(port)"
        let forged: [[(String, String)]] = [
          [json], [json, ("Origin", "null")], [json, ("Origin", "http://evil.example")],
          [json, ("Origin", "http://127.0.0.1:1")], [json, ("Origin", "http://localhost:\(port)")],
          [("Origin", origin)], [("Origin", origin), ("Content-Type", "text/plain")],
          [("Origin", origin), ("Content-Type", "application/x-www-form-urlencoded")],
        ]
        for headers in forged {
          let reply = try client.send("POST", "/api/mounts/0/revert", client.usual + headers, body)
          #expect(reply.status == 403 || reply.status == 415, "\(headers)")
        }
        #expect((fixture.substitution / "replaced.txt").exists)
        #expect(try client.send("DELETE", "/content/0/top/plain.txt").status == 405)
      }
    }

    @Test("no path leads out of a layer", .timeLimit(.minutes(1)))
    func paths() throws {
      try withServer { fixture, server in
        try (fixture.folder / "secret").write("secret")
        try (fixture.substitution / "out").makeLink(to: "..")
        try (fixture.substitution / "file").makeLink(to: "../secret")
        try (fixture.substitution / "whole").makeLink(to: "/")
        let escapes = [
          "../secret", "%2e%2e/secret", "folder/../../secret", "..%2fsecret", "folder%2f..%2f..%2fsecret",
          "out/secret", "file", "whole/etc/passwd", "plain.txt%00", "folder//both.txt", "./plain.txt", "%",
          "%zz", "folder/", "",
        ]
        for path in escapes {
          for layer in ["0", "1", "view", "9", "-1", "x"] {
            let reply = try server.client.get("/content/0/\(layer)/\(path)")
            #expect(reply.status == 404 || reply.status == 400, "\(layer) \(path): \(reply.text)")
          }
          let quoted = JSONWriter.quoted(path)
          for word in ["override", "revert", "hide"] where path.contains("..") || path == "" {
            for key in ["paths", "encodedPaths"] {
              let reply = try server.client.post("/api/mounts/0/\(word)", "{\"\(key)\":[\(quoted)]}")
              #expect(reply.status >= 400, "\(word) \(path): \(reply.text)")
            }
          }
          if path.contains("/"), path != "folder/" {
            #expect(try server.client.put("/content/0/top/\(path)", [1]).status >= 400, "\(path)")
          }
        }
        #expect(try (fixture.folder / "secret").readText() == "secret")
        #expect(try server.client.put("/content/0/top/.routes", [1]).status == 409)
      }
    }

    @Test("as root, no program is started", .enabled(if: geteuid() == 0), .timeLimit(.minutes(1)))
    func root() throws {
      let fixture = try Fixture()
      let opened = fixture.folder / "opened"
      try opened.withFakeOpener { environment in
        try withMount(fixture.setup) { mount in
          let server = try PageServer(mount, environment: environment)
          guard case .array(let mounts) = try server.json("/api/mounts") else { return #expect(Bool(false)) }
          #expect(mounts.first?["opensFolders"] == .boolean(false))
          let reply = try server.client.post("/api/mounts/0/open", #"{"path":"folder/inner.txt"}"#)
          #expect(reply.status == 501 && reply.text.contains("root"))
          let words = [try Binary.underTest(), "ui", mount.point]
          let other = try Child(Command(words, environment: environment))
          #expect(eventually(within: 30) { other.outputText.hasSuffix("\n") })
          other.signal(SIGINT)
          #expect(try other.wait(timeout: 20).status == 0)
        }
      }
      #expect(!opened.exists)
    }

    @Test("an edit does not reach another mount at the same path", .timeLimit(.minutes(1)))
    func otherMount() throws {
      let fixture = try Fixture()
      let mount = try Mount(fixture.setup)
      let server = try PageServer(mount)
      let device = { try Descriptor.open(fixture.setup.point.bytes, [.pathOnly, .directory]).device() }
      let first = try device()
      try mount.unmount()
      var others: [(fixture: Fixture, mount: Mount)] = []
      var second = try Mount(fixture.setup)
      // The kernel may give it the number that has become free: then another mount is to take that one.
      while try device() == first, others.count < 20 {
        try second.unmount()
        let other = try Fixture()
        others.append((other, try Mount(other.setup)))
        second = try Mount(fixture.setup)
      }
      try #require(try device() != first)
      let reply = try server.client.post("/api/mounts/0/revert", #"{"paths":["replaced.txt"]}"#)
      #expect(reply.status == 409, "\(reply.text)")
      #expect(try server.client.put("/content/0/top/plain.txt", [1]).status == 409)
      #expect(try server.client.get("/api/mounts/0/tree").status == 409)
      for mount in others.map(\.mount) + [second] { try mount.unmount() }
      #expect((fixture.substitution / "replaced.txt").exists)
      #expect(!(fixture.substitution / "plain.txt").exists)
    }

    @Test("malformed requests are answered with an error", .timeLimit(.minutes(1)))
    func malformed() throws {
      try withServer { _, server in
        for body in ["", "x", "[]", "{}", #"{"paths":1}"#, #"{"paths":[1]}"#, #"{"paths":[]}"#] {
          let reply = try server.client.post("/api/mounts/0/hide", body)
          #expect(reply.status == 400, "\(body)")
          #expect(JSONValue(reply.body)?["error"]?.string?.isEmpty == false)
        }
        for path in ["/api", "/api/mounts/1/status", "/api/mounts/0/none", "/api/mounts/x/tree", "/none"] {
          #expect(try server.client.get(path).status == 404, "\(path)")
        }
        let huge = [UInt8](repeating: UInt8(ascii: " "), count: 5 << 20)
        #expect(
          try server.client.send("POST", "/api/mounts/0/hide", server.client.changing(), huge).status == 413)
        let long = String(repeating: "a", count: 200_000)
        #expect(try server.client.get("/" + long).status >= 400)
        #expect(try server.client.get("/index.html").status == 200)
      }
    }
  }
}

extension ByteString {
  /// Passes an environment with a display, in which xdg-open writes its argument to this file.
  fileprivate func withFakeOpener(_ body: ([String: String]) throws -> Void) throws {
    let folder = try TemporaryFolder()
    let program = folder / "xdg-open"
    try program.write("#!/bin/sh\necho \"$1\" >'\(text)'\n")
    try program.call("chmod") { chmod($0, 0o755) }
    let path = getenv("PATH").map { String(cString: $0) } ?? ""
    try body(["PATH": "\(folder.path.text):\(path)", "DISPLAY": ":9"])
  }
}
