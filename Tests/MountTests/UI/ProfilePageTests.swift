import Posix
import Routing
import TestSupport
import Testing

/// Profiles in `bundlefs ui`: by its API, and in a browser, which `scripts/test --browser` enables.
extension MountTests {
  @Suite struct ProfilePageTests {
    @Test("profiles are saved, listed, loaded and undone, and names are checked", .timeLimit(.minutes(1)))
    func requests() throws {
      let fixture = try LayersFixture()
      try withMount(fixture.setup("a", "b", options: ["hide=*.bak"])) { mount in
        let server = try PageServer(mount, environment: ["XDG_CONFIG_HOME": fixture.folder.path.text])
        let post = { (json: String) in try server.client.post("/api/mounts/0/profiles", json) }
        #expect(try server.json("/api/mounts/0/profiles") == .array([]))
        #expect(try post(#"{"save":"both"}"#).status == 200)
        #expect(try post(#"{"save":"both"}"#).status == 409)
        #expect(try post(#"{"save":"both","replace":true}"#).status == 200)
        for name in ["", "../x", "a/b", "..", #"\u0000"#] {
          for verb in ["save", "load"] {
            #expect(try post("{\"\(verb)\":\"\(name)\"}").status == 409, "\(name)")
          }
        }
        #expect(try post("{}").status == 400)
        let file = fixture.folder / "bundlefs/profiles/both"
        try file.write(file.readText().replacing("hide=*.bak\n", with: "hide=*.tmp\n"))
        try fixture.change("set", "mods/b")
        let loaded = try post(#"{"load":"both"}"#)
        let reply = try #require(JSONValue(loaded.body))
        #expect(reply["note"]?.string?.contains("hide (*.tmp instead of *.bak)") == true, "\(loaded.text)")
        try fixture.expect("a", "b")
        guard case .array(let rows) = try server.json("/api/mounts/0/profiles") else {
          throw TestFailure("no array")
        }
        #expect(rows.count == 1 && rows[0]["present"] == .boolean(true))
        _ = try server.undo(reply["undo"]?.string ?? "")
        try fixture.expect("b")
        #expect(try server.interrupt().status == 0)
      }
    }

    @Test(
      "the menu saves the stack and loads one", .enabled(if: Browser.program != nil), .timeLimit(.minutes(4)))
    func menu() throws {
      let shown = try ShownMount(["top", "middle"]) { main, layers in
        try (main / "a.txt").write("main\n")
        for layer in layers { try (layer / "a.txt").write("layer\n") }
      }
      let page = shown.page
      try page.wait(
        "!document.getElementById('profiles').hidden && document.getElementById('profile-load').hidden")
      let save = { (name: String) in
        try page.click("#profile-name")
        try page.type(name)
        try page.press("Enter")
        let text = try PageDriver.literal("Saved the profile \(name)")
        try page.wait("document.getElementById('undo-text').textContent === \(text)")
      }
      try save("<b>Nacht")
      try page.wait("document.getElementById('profile-text').textContent === 'These are its layers.'")
      #expect(
        try page.texts("[...document.querySelectorAll('#profile-select option')].map(o => o.textContent)")
          == ["<b>Nacht"])
      try page.click(".layer:nth-child(1) .switch")
      try shown.wait(forLayers: "1 top off,2 middle,M main")
      try page.wait("document.getElementById('profile-text').textContent === '2 layers'")
      try page.click("#profile-button")
      try shown.wait(forLayers: "1 top,2 middle,M main")
      try page.click("#undo-button")
      try shown.wait(forLayers: "1 middle,M main")
      try page.click("#profile-name")
      try page.type("<b>Nacht")
      try page.wait("document.getElementById('profile-save-button').textContent === 'Replace'")
      try page.press("Enter")
      try page.wait("document.getElementById('profile-text').textContent === 'These are its layers.'")
      #expect(try (shown.folder / "bundlefs/profiles").names() == ["<b>Nacht"])
      try shown.end()
    }
  }
}
