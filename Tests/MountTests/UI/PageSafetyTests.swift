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
        for path in ["/", "/app.js", "/api/mounts", "/content/0/view/plain.txt", "/?token=", "/?token=0"] {
          let reply = try stranger.get(path)
          #expect(reply.status == 403, "\(path)")
          #expect(reply.headers["set-cookie"] == nil)
        }
        var forger = stranger
        forger.cookie = server.client.cookie.map { String($0.dropLast()) + "g" }
        #expect(try forger.get("/api/mounts").status == 403)
        let token = server.address.split(separator: "=").last.map(String.init) ?? ""
        #expect(token.count == 64)
        #expect(try stranger.get("/api/mounts?token=\(token)").status == 403)
        let reply = try stranger.get("/?token=\(token)")
        #expect(reply.status == 303)
        #expect(reply.headers["location"] == "/")
        #expect(reply.headers["set-cookie"]?.hasSuffix("; HttpOnly; SameSite=Strict; Path=/") == true)
        #expect(try server.client.get("/").status == 200)
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
        #expect(try server.client.get("/").status == 200)
      }
    }
  }
}
