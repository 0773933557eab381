import Posix
import TestSupport
import Testing

/// Tables of strings in the page of `bundlefs ui`, in a browser.
///
/// `scripts/test --browser` enables these tests.
extension MountTests {
  @Suite(.enabled(if: Browser.program != nil, "scripts/test --browser runs these tests"))
  struct StringsPageTests {
    /// The shown rows, joined: key, the development language's value, the chosen language's, and its layer.
    private static let cells = """
      [...document.querySelectorAll(".string-row:not([hidden])")].map(row => [
        row.querySelector("strong").textContent, row.querySelector(".string-base").textContent,
        row.querySelector("input").value, row.querySelector(".string-layer").textContent
      ].join("|")).join()
      """

    /// A mount with English and French tables, whose page shows the grid.
    private func shownGrid() throws -> ShownMount {
      let shown = try ShownMount(["top"], options: ["strings=merge"]) { main, layers in
        for language: ByteString in ["en.lproj", "fr.lproj"] {
          try (main / language).makeDirectory()
        }
        try (main / "en.lproj/Words.strings").write("\"a\" = \"one\";\n\"b\" = \"two\";\n")
        try (main / "fr.lproj/Words.strings").write("\"a\" = \"un\";\n")
        try (layers[0] / "fr.lproj").makeDirectory()
      }
      try shown.page.click("#strings-tab")
      try shown.page.wait("\(Self.cells) === 'a|one|un|Mmain,b|two||missing'")
      return shown
    }

    @Test(
      "the grid marks missing keys, and a value is edited into the top layer",
      .timeLimit(.minutes(4)))
    func edit() throws {
      let shown = try shownGrid()
      let page = shown.page
      try page.click(".string-row:nth-child(2) input")
      try page.type("deux")
      try page.press("Enter")
      try page.wait("\(Self.cells) === 'a|one|un|Mmain,b|two|deux|1top'")
      let table = shown.mount.point / "fr.lproj/Words.strings"
      #expect(try table.readText().contains("deux"))
      #expect(try table.readText().contains("un"))
      try page.click("#undo-button")
      try page.wait("\(Self.cells) === 'a|one|un|Mmain,b|two||missing'")
      try shown.end()
    }

    @Test("a field that is being edited stays while the tables change", .timeLimit(.minutes(4)))
    func changeDuringEdit() throws {
      let shown = try shownGrid()
      let page = shown.page
      let english = shown.main / "en.lproj/Words.strings"
      try page.click(".string-row:nth-child(2) input")
      try page.type("de")
      try english.write("\"a\" = \"1\";\n\"b\" = \"2\";\n")
      try page.wait("\(Self.cells) === 'a|1|un|Mmain,b|two|de|missing'")
      // A key before the others would move the field away: it waits.
      try english.write("\"0\" = \"0\";\n\"a\" = \"1\";\n\"b\" = \"2\";\n")
      try page.wait("document.getElementById('strings-count').textContent === '3 keys, 2 missing'")
      try page.type("ux")
      try page.wait("\(Self.cells) === 'a|1|un|Mmain,b|two|deux|missing'")
      try page.press("Enter")
      try page.wait("\(Self.cells) === '0|0||missing,a|1|un|Mmain,b|2|deux|1top'")
      try shown.end()
    }
  }
}
