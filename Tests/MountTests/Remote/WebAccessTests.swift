import Posix
import TestSupport
import Testing

/// Servers that want credentials or encryption, and those behind a proxy.
extension MountTests {
  @Suite(.serialized, .enabled(if: NginxServer.isInstalled)) struct WebAccessTests {
    private func archive(_ content: String) -> [UInt8] { ZipBuilder([.init("a", content)]).bytes }

    @Test("headers of a file open a server's files, also after a token was replaced", .timeLimit(.minutes(2)))
    func headers() throws {
      let server = try NginxServer(#"if ($http_x_token != "hidden") { return 403; }"#)
      try server.replace("app.zip", by: archive("first"), version: 0)
      try (server.folder / "right").write("X-Token: hidden\n")
      try (server.folder / "wrong").write("X-Token: wrong\n")
      let headers = server.folder / "headers"
      func link(_ name: ByteString) throws { try Command(["ln", "-sfn", name, headers]).check() }
      try link("right")
      let option = "http_headers_file=" + MountSetup.escaped(headers)
      try withMount(try server.setup([server.url("app.zip")], [option, "layer_timeout=2"])) { mount in
        func isReported(_ text: String) throws -> Bool {
          try eventually(within: 30) { try mount.command("status").outputText.contains(text) }
        }
        #expect(try (mount.point / "a").readText() == "first")
        try link("wrong")
        #expect(try isReported("the server refuses access"))
        try link("right")
        #expect(try mount.command("upgrade").status == 0)
        try server.replace("app.zip", by: archive("second"), version: 1)
        let isShown = eventually(within: 30) { (try? (mount.point / "a").readText()) == "second" }
        #expect(isShown)
        let status = try mount.command("status").outputText
        #expect(!status.contains("hidden"), "\(status)")
        // What is wrong with it is reported, and what is cached stays.
        try (server.folder / "right").write("hidden\n")
        try server.replace("app.zip", by: archive("third"), version: 2)
        #expect(try isReported("http_headers_file: line 1"))
        #expect(try (mount.point / "a").readText() == "second")
      }
    }

    @Test("a mount with a malformed file of headers is refused, with the line")
    func malformedHeaders() throws {
      let server = try NginxServer()
      try (server.folder / "headers").write("X-Token: a\nnonsense\n")
      let option = "http_headers_file=" + MountSetup.escaped(server.folder / "headers")
      #expect {
        try withMount(try server.setup([server.url("app.zip")], [option])) { _ in }
      } throws: { "\($0)".contains("http_headers_file: line 2") }
    }

    @Test("a user and a password come from ~/.netrc, and a proxy from the environment")
    func netrc() throws {
      let server = try NginxServer("auth_basic realm; auth_basic_user_file \"users\";")
      try server.replace("app.zip", by: archive("first"), version: 0)
      try (server.folder / "users").write("me:{PLAIN}secret\n")
      let home = try server.folder.folder("home")
      var setup = try server.setup(["http://files.invalid/app.zip"])
      setup.environment["HOME"] = home.text
      setup.environment["http_proxy"] = "http://127.0.0.1:\(server.port)"
      let refused = setup
      #expect {
        try withMount(refused) { _ in }
      } throws: { "\($0)".contains("~/.netrc") }
      try (home / ".netrc").write("machine files.invalid login me password secret\n")
      try withMount(setup) { mount in
        #expect(try (mount.point / "a").readText() == "first")
        let status = try mount.command("status", "--json").outputText
        #expect(!status.contains("secret"))
      }
    }

    @Test("a certificate counts if an authority of the system has signed it")
    func certificates() throws {
      let server = try NginxServer(isEncrypted: true)
      try server.replace("app.zip", by: archive("first"), version: 0)
      let setup = try server.setup([server.url("app.zip")])
      #expect {
        try withMount(setup) { _ in }
      } throws: { "\($0)".contains("the server's certificate is not trusted") }
      // In a mount namespace of its own, the system's authorities are this server alone.
      var command = Command([
        "unshare", "--mount", "--propagation", "private", "bash", "-euc",
        """
        mount --bind "$1/certificate" /etc/ssl/certs/ca-certificates.crt
        "$2" "$1/main" "$1/mount" -o "substitution=$3"
        trap 'umount "$1/mount"' EXIT
        cat "$1/mount/a"
        """, "bash", server.folder.path, try Binary.underTest(), server.url("app.zip"),
      ])
      command.environment = setup.environment
      let outcome = try command.run()
      #expect(outcome.outputText == "first", "\(outcome.errorText)")
    }
  }
}
