import Posix
import TestSupport
import Testing

/// A web page of a bundle in a browser. Only `scripts/test --browser` has one, and says so by
/// `BUNDLEFS_BROWSER`; anywhere else these tests do not run and are told as skipped.
extension MountTests {
  @Suite(.enabled(if: Browser.program != nil, "scripts/test --browser runs these tests"))
  struct PageTests {
    @Test("a reload shows the override of each part, and without it the bundle's", .timeLimit(.minutes(3)))
    func reloads() throws {
      let fixture = try Fixture(isFilled: false)
      try SamplePage.make(in: fixture.main)
      var setup = fixture.setup
      setup.options = ["languages=fr"]
      try withMount(setup) { mount in
        let browser = try Browser(#require(Browser.program), points: SamplePage.points)
        let first = try browser.load("file://\(mount.point.text)/index.html")
        #expect(SamplePage.Look(first) == SamplePage.Look(overridden: []))

        for part in SamplePage.Part.allCases {
          try drop(part, in: fixture.substitution)
          try expect([part], in: browser, of: mount)
          try remove(part, from: fixture.substitution)
          try expect([], in: browser, of: mount)
        }
        for part in SamplePage.Part.allCases { try drop(part, in: fixture.substitution) }
        try expect(Set(SamplePage.Part.allCases), in: browser, of: mount)
        try browser.end()
      }
    }

    /// Expects what a reload shows.
    private func expect(
      _ overridden: Set<SamplePage.Part>, in browser: Browser, of mount: Mount,
      location: SourceLocation = #_sourceLocation
    ) throws {
      try mount.barrier()
      let sight = try browser.reload()
      #expect(sight.navigation == "reload", sourceLocation: location)
      #expect(
        SamplePage.Look(sight) == SamplePage.Look(overridden: overridden), "\(overridden)",
        sourceLocation: location)
    }

    private func drop(_ part: SamplePage.Part, in substitution: ByteString) throws {
      let path = substitution / SamplePage.overridePath(part)
      try path.parent.makeDirectories()
      try path.write(SamplePage.content(part, isOverride: true))
    }

    private func remove(_ part: SamplePage.Part, from substitution: ByteString) throws {
      try (substitution / SamplePage.overridePath(part)).remove()
    }
  }
}
