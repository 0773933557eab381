import Posix
import TestSupport
import Testing

/// Names and contents that attack the page of `bundlefs ui`, in a browser. `scripts/test --browser` enables these tests.
extension MountTests {
  @Suite(.enabled(if: Browser.program != nil, "scripts/test --browser runs these tests"))
  struct SafetyPageTests {
    @Test("names and contents of layers execute nothing", .timeLimit(.minutes(4)))
    func attacks() throws {
      let script = "parent.attacked = top.attacked = window.attacked = 1; fetch('api/mounts')"
      let names = [
        "<img src=x onerror=attacked=1>.txt", "'\"><svg onload=attacked=1>", "line\nfeed.txt",
        "javascript:attacked=1", "%3Cscript%3Eattacked=1%3C%2Fscript%3E", "${attacked=1}{{attacked=1}}",
        "\u{202E}txt.exe",
      ]
      let shown = try ShownMount(["<b onmouseover=attacked=1>layer"]) { main, layers in
        for layer in [main, layers[0]] {
          for name in names { try (layer / ByteString(name)).write("<script>\(script)</script>\n") }
          try (layer / "page.html").write("<!doctype html><script>\(script)</script><h1>Page</h1>")
          try (layer / "picture.svg").write(
            """
            <svg xmlns="http://www.w3.org/2000/svg" width="9" height="9" onload="\(script)">
            <script>\(script)</script></svg>
            """)
          try (layer / "Words.strings").write(
            "\"<img src=x onerror=attacked=1>\" = \"<script>\(script)</script>\";\n")
          try (layer / ByteString([0x62, 0xff, 0x2e, 0x74])).write("invalid\n")
        }
      }
      let page = shown.page
      let count = names.count + 4
      try page.wait("document.querySelectorAll('.entry:not([hidden])').length === \(count)")
      for index in 1...count {
        let row = ".virtual-window > :nth-child(\(index))"
        try page.click(row)
        let title = try PageDriver.literal(try page.text("document.querySelector('\(row)').title"))
        try page.wait(
          "document.querySelector('.file-folder')?.title === \(title) && document.querySelectorAll('.version')[1]"
        )
      }
      // A frame with the content itself, as a link to it would open it.
      for path in ["page.html", "picture.svg"] {
        try page.usePage(1)
        let folder = shown.address.dropLast("index.html".count)
        try page.load("\(folder)content/0/0/\(path)")
        #expect(try page.text("typeof attacked") == "undefined")
        try page.usePage(0)
      }
      #expect(try page.text("typeof attacked") == "undefined")
      let foreign = "main script, main iframe, main [onerror], main [onload]"
      #expect(try page.number("document.querySelectorAll('\(foreign)').length") == 0)
      // The browser reports what it has refused to run.
      try shown.end { $0.contains("Blocked script") || $0.contains("Content Security Policy") }
    }
  }
}
