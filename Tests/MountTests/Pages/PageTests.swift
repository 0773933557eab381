import Posix
import TestSupport
import Testing

/// A bundle's web page in a browser. `scripts/test --browser` enables these tests through `BUNDLEFS_BROWSER`;
/// otherwise they are skipped.
extension MountTests {
  @Suite(.enabled(if: Browser.program != nil, "scripts/test --browser runs these tests"))
  struct PageTests {
    @Test("a reload shows each override, and the bundle's file after its removal", .timeLimit(.minutes(3)))
    func reloads() throws {
      let fixture = try Fixture(isFilled: false)
      try SamplePage.make(in: fixture.main)
      try withMount(fixture.setup("languages=fr")) { mount in
        let browser = try Browser(#require(Browser.program), points: SamplePage.points)
        let first = try browser.load("file://\(mount.point.text)/index.html")
        #expect(SamplePage.Appearance(first) == SamplePage.Appearance(overridden: []))

        for part in SamplePage.Part.allCases {
          try add(part, to: fixture.substitution)
          try expect([part], in: browser, of: mount)
          try remove(part, from: fixture.substitution)
          try expect([], in: browser, of: mount)
        }
        for part in SamplePage.Part.allCases { try add(part, to: fixture.substitution) }
        try expect(Set(SamplePage.Part.allCases), in: browser, of: mount)
        try browser.end()
      }
    }

    /// Reloads the page and expects these overrides.
    private func expect(
      _ overridden: Set<SamplePage.Part>, in browser: Browser, of mount: Mount,
      location: SourceLocation = #_sourceLocation
    ) throws {
      try mount.barrier()
      let state = try browser.reload()
      #expect(state.navigation == "reload", sourceLocation: location)
      #expect(
        SamplePage.Appearance(state) == SamplePage.Appearance(overridden: overridden), "\(overridden)",
        sourceLocation: location)
    }

    private func add(_ part: SamplePage.Part, to substitution: ByteString) throws {
      let path = substitution / SamplePage.overridePath(part)
      try path.parent.makeDirectories()
      try path.write(SamplePage.content(part, isOverride: true))
    }

    private func remove(_ part: SamplePage.Part, from substitution: ByteString) throws {
      try (substitution / SamplePage.overridePath(part)).remove()
    }
  }
}
