import Glibc
import Posix
import TestSupport
import Testing

/// How the page of `bundlefs ui` starts: in the browser of a user with a display, and beside a mount that hangs.
/// `scripts/test --browser` enables these tests.
extension MountTests {
  @Suite(.enabled(if: Browser.program != nil, "scripts/test --browser runs these tests"))
  struct StartPageTests {
    /// As xdg-open does, runs a browser and waits for it. It exits with the folder of its profile.
    private static let opener = """
      #!/bin/sh
      "$TEST_BROWSER" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run \\
        --disable-background-networking --user-data-dir="$TEST_FOLDER/profile" --remote-debugging-port=0 "$1" &
      browser=$!
      while [ -e "$TEST_FOLDER/run" ]; do sleep 0.1; done
      kill $browser; wait $browser
      rm -rf "$TEST_FOLDER/profile"
      : >"$TEST_FOLDER/ended"
      """

    /// Asks the browser for the titles of its pages.
    private static let titles = """
      import json, sys, urllib.request
      port = open(sys.argv[1]).readline().strip()
      for page in json.load(urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list")): print(page["title"])
      """

    @Test(
      "the browser of a user without rights gets the page", .enabled(if: geteuid() == 0),
      .timeLimit(.minutes(3)))
    func start() throws {
      let fixture = try Fixture()
      try withOpenDevice {
        let setup = try UnprivilegedTests().userSetup(fixture)
        let folder = try fixture.folder.folder("home")
        try folder.setOwner(65534, group: 65534)
        let opener = folder / "xdg-open"
        try opener.write(Self.opener)
        try opener.setMode(0o755)
        try (folder / "run").write("")
        let path = getenv("PATH").map { String(cString: $0) } ?? ""
        let environment = [
          "PATH": "\(folder.text):\(path)", "DISPLAY": ":9", "HOME": folder.text,
          "XDG_RUNTIME_DIR": folder.text,
          "TMPDIR": folder.text, "TEST_FOLDER": folder.text, "TEST_BROWSER": try #require(Browser.program),
        ]
        try withMount(setup) { mount in
          let program = try #require(setup.binary)
          let words: [ByteString] = [program, "ui", mount.point]
          let process = try Child(Command(words, environment: environment).asUser(65534))
          defer { try? process.kill() }
          var shown = ""
          let isShown = eventually(within: 60) {
            let port = folder / "profile/DevToolsActivePort"
            guard port.exists else { return process.status() != nil }
            shown = (try? Command("python3", "-c", Self.titles, port.text).run().outputText) ?? ""
            return shown.contains("mount – bundlefs")
          }
          #expect(isShown, "\(shown) \(process.errorText)")
          #expect(process.outputText.split(separator: "\n").count == 1)
          process.signal(SIGINT)
          #expect(try process.wait(timeout: 20).status == 0)
          try (folder / "run").remove()
          #expect(eventually(within: 30) { (folder / "ended").exists })
          // Neither the file that leads to the page nor its folder is left.
          #expect(try folder.names().filter { $0.hasPrefix("bundlefs-ui-") } == [])
        }
      }
    }

    @Test("the page shows the mounts that answer", .timeLimit(.minutes(4)))
    func pageOfHangingMount() throws {
      let (fixture, other) = (try Fixture(), try Fixture())
      try withMount(fixture.setup("watchdog=off")) { hanging in
        try withMount(other.setup) { mount in
          let words = [try Binary.underTest(), "ui", hanging.point, mount.point, "--no-open"]
          let server = try Child(Command(words))
          defer { try? server.kill() }
          #expect(eventually(within: 30) { server.outputText.hasSuffix("\n") })
          hanging.signalWorker(SIGSTOP)
          defer { hanging.signalWorker(SIGCONT) }
          let page = try PageDriver()
          try page.load(String(server.outputText.dropLast()))
          try page.wait(ShownMount.isLoaded)
          try page.wait("document.querySelector('.entry[title=\"plain.txt\"]')")
          let select = "document.getElementById('mount-select')"
          #expect(try page.text("\(select).value") == "1")
          let select0 = """
            (() => { \(select).value = 0; \(select).dispatchEvent(new Event("change", { bubbles: true })); })()
            """
          _ = try page.text(select0)
          try page.wait("document.getElementById('notice').textContent.endsWith('does not answer.')")
          hanging.signalWorker(SIGCONT)
          try page.wait("document.getElementById('notice').hidden")
          try page.wait(ShownMount.isLoaded)
          #expect(
            try page.text("document.getElementById('mount-name').textContent").hasSuffix(hanging.point.text))
        }
      }
    }
  }
}
