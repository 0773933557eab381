import Posix
import TestSupport
import Testing

/// Tables of strings in the page of `bundlefs ui`, in a browser.
///
/// `scripts/test --browser` enables these tests.
extension MountTests {
  @Suite(.enabled(if: Browser.program != nil, "scripts/test --browser runs these tests"))
  struct StringsPageTests {
    @Test(
      "the grid marks missing keys, and a value is edited into the top layer",
      .timeLimit(.minutes(4)))
    func edit() throws {
      let shown = try ShownMount(["top"], options: ["strings=merge"]) { main, layers in
        for language: ByteString in ["en.lproj", "fr.lproj"] {
          try (main / language).makeDirectory()
        }
        try (main / "en.lproj/Words.strings").write("\"a\" = \"one\";\n\"b\" = \"two\";\n")
        try (main / "fr.lproj/Words.strings").write("\"a\" = \"un\";\n")
        try (layers[0] / "fr.lproj").makeDirectory()
      }
      let page = shown.page
      try page.click("#strings-tab")
      let cells = """
        [...document.querySelectorAll(".string-row:not([hidden])")].map(row => [
          row.querySelector("strong").textContent, row.querySelector(".string-base").textContent,
          row.querySelector("input").value, row.querySelector(".string-layer").textContent
        ].join("|")).join()
        """
      try page.wait("\(cells) === 'a|one|un|Mmain,b|two||missing'")
      try page.click(".string-row:nth-child(2) input")
      try page.type("deux")
      try page.press("Enter")
      try page.wait("\(cells) === 'a|one|un|Mmain,b|two|deux|1top'")
      let table = shown.mount.point / "fr.lproj/Words.strings"
      #expect(try table.readText().contains("deux"))
      #expect(try table.readText().contains("un"))
      try page.click("#undo-button")
      try page.wait("\(cells) === 'a|one|un|Mmain,b|two||missing'")
      try shown.end()
    }
  }
}
