import Posix
import TestSupport
import Testing

/// `bundlefs diff MOUNTPOINT --html FILE`.
extension MountTests {
  @Suite struct ReportTests {
    /// A picture of one red pixel.
    private static let picture: [UInt8] = [
      0x47, 0x49, 0x46, 0x38, 0x39, 0x61, 1, 0, 1, 0, 0x80, 0, 0, 0xFF, 0, 0, 0xFF, 0xFF, 0xFF, 0x2C, 0, 0, 0,
      0, 1, 0,
      1, 0, 0, 2, 2, 0x44, 1, 0, 0x3B,
    ]
    private static let hostile = #"<img src=x onerror="window.hit=1">'&amp;"#

    private func report(_ mount: Mount, to file: ByteString, _ words: ByteString...) throws -> Outcome {
      try Command([try Binary.underTest(), "diff", mount.point] + words + ["--html", file]).run(timeout: 60)
    }

    private func filled() throws -> Fixture {
      let fixture = try Fixture()
      let top = fixture.substitution
      try (top / "pictures").makeDirectory()
      try (top / "pictures/red.gif").write(Self.picture)
      try (top / "pictures/large.png").write([UInt8](repeating: 1, count: 70_000))
      try (top / "pictures/run.svg").write(
        #"<svg xmlns="http://www.w3.org/2000/svg"><script>window.hit = 1</script></svg>"#)
      try (top / ByteString(Self.hostile)).write("hostile\n")
      try (top / ByteString(Array("bad\u{202e}".utf8) + [0xFF, 0x0A])).write("")
      try (top / "only").makeDirectory()
      try (top / "only/<b>.txt").write("x")
      return fixture
    }

    @Test("it has the winners, the versions and the pictures, and escapes names", .timeLimit(.minutes(1)))
    func content() throws {
      let fixture = try filled()
      try withMount(fixture.setup) { mount in
        let file = fixture.folder / "report.html"
        try file.write("former")
        let outcome = try report(mount, to: file)
        #expect(outcome.status == 0 && outcome.output.isEmpty, "\(outcome.errorText)")
        let text = try file.readText()
        for part in [
          "<bdi class=\"name\">replaced.txt</bdi> <span class=\"verdict\">overridden by</span>",
          "data:image/gif;base64,R0lGODlhAQABAIAAAP8AAP///ywAAAAAAQABAAACAkQBADs=",
          "too large for a thumbnail",
          "&lt;img src=x onerror=&quot;window.hit=1&quot;&gt;&#39;&amp;amp;", "&lt;b&gt;.txt", "wins",
        ] { #expect(text.contains(part), "\(part)") }
        for part in ["<img src=x", "<script", "<b>", "\u{202e}", "style=", "http://", "https://"] {
          #expect(!text.contains(part), "\(part)")
        }
        #expect(!text.contains("plain.txt"))
        #expect(try fixture.folder.path.names().filter { $0.hasPrefix(".report") } == [])
        let opening = text.split(separator: "<ul").count
        #expect(opening == text.split(separator: "</ul>").count && text.hasSuffix("</html>\n"))

        #expect(try report(mount, to: file, "pictures").status == 0)
        let part = try file.readText()
        #expect(part.contains("red.gif") && !part.contains("replaced.txt"))
      }
    }

    @Test("it is written whole or not at all", .timeLimit(.minutes(1)))
    func failures() throws {
      let fixture = try Fixture()
      try withMount(fixture.setup) { mount in
        let folder = try fixture.folder.folder("reports")
        #expect(try report(mount, to: folder).status == 1)
        #expect(try report(mount, to: folder / "none/x.html").status == 1)
        #expect(try report(mount, to: "").status == 2)
        let file = folder / "x.html"
        #expect(try report(mount, to: file, "--json").status == 2)
        #expect(try report(mount, to: file, "nothing").status == 1)
        #expect(try folder.names() == [])
        let outcome = try Command([try Binary.underTest(), "tree", mount.point, "--html", file]).run()
        #expect(outcome.status == 2 && outcome.errorText.contains("--html"))
        try (folder / "link").makeLink(to: "x.html")
        try file.write("former")
        #expect(try report(mount, to: folder / "link").status == 0)
        #expect(try (folder / "link").linkTarget() == "x.html")
        #expect(try file.readText().hasPrefix("<!doctype html>"))
      }
    }

    @Test(
      "a browser shows it, and runs and loads nothing", .enabled(if: Browser.program != nil),
      .timeLimit(.minutes(2)))
    func browser() throws {
      let fixture = try filled()
      try withMount(fixture.setup) { mount in
        let file = fixture.folder / "report.html"
        #expect(try report(mount, to: file).status == 0)
        let page = try PageDriver()
        try page.load("file://\(file)")
        try page.wait("document.querySelectorAll('.tree li').length > 5")
        // The style sheet has the hash that the policy names.
        #expect(try page.text("getComputedStyle(document.querySelector('.versions')).display") == "flex")
        try page.wait("[...document.images].some(image => image.naturalWidth === 1)")
        #expect(try page.text("window.hit") == "undefined")
        #expect(
          try page.texts("[...document.querySelectorAll('h1, h2')].map(n => n.tagName)") == [
            "H1", "H2", "H2",
          ])
        #expect(try page.faults() == [])
      }
    }
  }
}
