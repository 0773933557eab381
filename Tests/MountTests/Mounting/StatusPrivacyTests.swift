import Posix
import TestSupport
import Testing

/// What `bundlefs status` shows to other users, and how it prints names.
extension MountTests.ExclusiveTests {
  @Suite(.serialized) struct StatusPrivacyTests {
    @Test("status names folders to the owner and root only, and prints no control character")
    func folders() throws {
      let fixture = try Fixture()
      let hidden = fixture.main / "private" / "hidden\u{1B}[31m\u{9B}name"
      try hidden.makeDirectories()
      try (fixture.main / "private").setMode(0o700)
      try withMount(fixture.setup("allow_other")) { mount in
        let limit = try KernelLimit.watches(0)
        defer { limit.restore() }
        try mount.warmCaches()
        let isReported = try eventually(within: 20) {
          try mount.command("status").outputText.contains("hidden")
        }
        #expect(isReported)
        for form in [[], ["--json"]] as [[ByteString]] {
          let words = [try Binary.underTest(), "status", mount.point] + form
          let own = try Command(words).check().outputText
          #expect(own.contains("hidden") && own.contains("[31m"))
          #expect(!own.unicodeScalars.contains { $0 == "\u{1B}" || $0 == "\u{9B}" || $0 == "\u{7F}" })
          let others = try Command(words).asUser(MountTests.UnprivilegedTests.nobody).check().outputText
          #expect(!others.contains("hidden") && others.contains("no more inotify watches"), "\(others)")
          #expect(own.contains("encodedOptions") == !form.isEmpty && !others.contains("encodedOptions"))
        }
      }
    }

    @Test("results are printed without control characters", .timeLimit(.minutes(1)))
    func results() throws {
      let fixture = try Fixture()
      try withMount(fixture.setup) { mount in
        try mount.writeControl("route Any s:Text\nx:a%C2%9Bb%7Fc%1Bd%E2%80%AEe\n")
        let text = try mount.controlFile.readText()
        #expect(text.contains(#"a\u009bb\u007fc\u001bd\u202ee"#), "\(text)")
        #expect(
          try mount.routesText().results.last?.userInfo?["Text"] == .text("a\u{9B}b\u{7F}c\u{1B}d\u{202E}e"))
      }
    }
  }
}
