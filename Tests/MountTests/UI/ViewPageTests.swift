import Posix
import TestSupport
import Testing

/// The views of the page of `bundlefs ui`, in a browser. `scripts/test --browser` enables these tests.
extension MountTests {
  @Suite(.enabled(if: Browser.program != nil, "scripts/test --browser runs these tests"))
  struct ViewPageTests {
    /// Writes a picture of this width, a sound of a tenth of a second, and a font.
    private static let media = """
      import struct, sys, wave, zlib
      folder, width = sys.argv[1], int(sys.argv[2])
      def chunk(kind, data): return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
      rows = b"".join(b"\\0" + bytes([width * 9, 80, 160]) * width for _ in range(8))
      open(folder + "/icon.png", "wb").write(b"\\x89PNG\\r\\n\\x1a\\n"
          + chunk(b"IHDR", struct.pack(">2I5B", width, 8, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
      with wave.open(folder + "/chime.wav", "wb") as sound:
          sound.setnchannels(1), sound.setsampwidth(2), sound.setframerate(8000), sound.writeframes(bytes(1600))
      open(folder + "/face.ttf", "wb").write(open("/usr/share/fonts/truetype/dejavu/DejaVuSans-Bold.ttf", "rb").read())
      """

    private func show() throws -> ShownMount {
      try ShownMount(["top", "middle"], options: ["strings=merge"]) { main, layers in
        for (index, layer) in ([main] + layers).enumerated() {
          let words: [ByteString] = [
            "python3", "-c", ByteString(Self.media), layer, ByteString("\(8 + index)"),
          ]
          try Command(words).check(timeout: 30)
        }
        try (main / "folder").makeDirectory()
        try (main / "folder/plain.txt").write("main\n")
        try (main / "en.lproj").makeDirectory()
        try (main / "en.lproj/Words.strings").write("\"a\" = \"one\";\n")
        try (main / "fr.lproj").makeDirectory()
        try (main / "fr.lproj/Words.strings").write("")
        try (layers[1] / "only.txt").write("middle\n")
      }
    }

    @Test("pictures have a swipe, sounds are played, and fonts have a sample", .timeLimit(.minutes(4)))
    func media() throws {
      let shown = try show()
      let page = shown.page
      try shown.select("icon.png")
      try page.wait("document.querySelectorAll('.pixel-size').length === 3")
      let sizes = "[...document.querySelectorAll('.pixel-size')].map(n => n.textContent).join()"
      try page.wait("\(sizes) === '9 × 8 px,10 × 8 px,8 × 8 px'")
      _ = try page.text("document.querySelector('.swipe-slider').focus()")
      try page.press("ArrowRight", "ArrowRight")
      try page.wait("document.querySelector('.swipe-right').style.clipPath.endsWith(' 52%)')")
      try shown.select("chime.wav")
      try page.wait("[...document.querySelectorAll('audio')].filter(n => n.duration === 0.1).length === 3")
      try shown.select("face.ttf")
      try page.wait(
        "[...document.querySelectorAll('.font-sample')].filter(n => n.style.fontFamily).length === 3")
      try shown.end()
    }

    @Test("every control of every view has a name, and all fits into 400 pixels", .timeLimit(.minutes(4)))
    func narrow() throws {
      let shown = try show()
      let page = shown.page
      for width in [1280, 400] {
        try page.resize(width, 720)
        for path in ["icon.png", "chime.wav", "face.ttf", "folder", "en.lproj/Words.strings", "only.txt"] {
          try page.click("nav [data-view=files]")
          try shown.select(path)
          try expectFit(page, width, path)
        }
        for view in ["layers", "files", "strings", "activity"] where width == 400 || view != "layers" {
          try page.click("nav [data-view=\(view)]")
          try expectFit(page, width, view)
        }
      }
      try shown.end()
    }

    private func expectFit(_ page: PageDriver, _ width: Int, _ view: String) throws {
      #expect(try page.namelessControls() == [], "\(view), \(width)")
      #expect(try page.number("document.documentElement.scrollWidth") <= Double(width), "\(view)")
      let outside = try page.texts(
        """
        [...document.querySelectorAll("button, input:not(.unseen), select, .version, .layer")].filter(node => {
          const box = node.getBoundingClientRect();
          return box.width > 0 && (box.left < -1 || box.right > \(width) + 1) && !node.closest(".scroll, .lines");
        }).map(node => node.outerHTML.slice(0, 80))
        """)
      #expect(outside == [], "\(view), \(width)")
    }

    @Test("a URL is posted and matched, and its notification shown", .timeLimit(.minutes(4)))
    func routes() throws {
      let shown = try show()
      let page = shown.page
      try shown.mount.writeControl("route Thing l:(thing)Kind/i:Count\n")
      try page.click("nav [data-view=activity]")
      try page.click("#route-url")
      try page.type("thing://thing/7")
      try page.click("#route-form [value=match]")
      try page.wait("document.querySelector('.result .tag')?.textContent === 'matched'")
      try page.click("#route-form [value=post]")
      try page.wait("document.querySelector('.result .tag')?.textContent === 'posted'")
      #expect(try page.text("document.querySelector('.result strong').textContent") == "Thing")
      try page.click("#route-url")
      try page.press("Control+a")
      try page.type("thing://none")
      try page.press("Enter")
      try page.wait(
        "document.querySelector('.result.is-rejected') || !document.getElementById('undo-bar').hidden")
      try shown.end()
    }

    @Test("the list is limited to a layer, a layer is added, and a file replaced", .timeLimit(.minutes(4)))
    func layers() throws {
      let shown = try show()
      let page = shown.page
      _ = try page.text(
        """
        (() => {
          const select = document.getElementById("files-layer");
          select.value = \(PageDriver.literal(shown.layers[1].text));
          select.dispatchEvent(new Event("change", { bubbles: true }));
        })()
        """)
      try shown.wait(for: [
        "chime.wav|overrides · 3 versions|top", "face.ttf|overrides · 3 versions|top",
        "icon.png|overrides · 3 versions|top", "only.txt|adds|middle",
      ])
      let further = try shown.folder.folder("further")
      try (further / "only.txt").write("further\n")
      try page.click("#add-path")
      try page.type(further.text)
      try page.press("Enter")
      try shown.wait(forLayers: "1 further,2 top,3 middle,M main")
      #expect(try (shown.mount.point / "only.txt").readText() == "further\n")
      try shown.select("only.txt")
      _ = try page.text(
        """
        (() => {
          const data = new DataTransfer();
          data.items.add(new File(["chosen\\n"], "other.txt"));
          const input = document.querySelector("#file input[type=file]");
          input.files = data.files;
          input.dispatchEvent(new Event("change", { bubbles: true }));
        })()
        """)
      try page.wait("document.getElementById('undo-text').textContent === 'Replaced only.txt'")
      #expect(try (further / "only.txt").readText() == "chosen\n")
      try page.press("Control+z")
      #expect(try eventually(within: 30) { try (further / "only.txt").readText() == "further\n" })
      // What is wrong with a layer stands beside it.
      try further.rename(to: shown.folder / "elsewhere")
      try page.wait("document.querySelector('.layer .problem')?.textContent.includes('does not lead to')")
      try shown.end()
    }
  }
}
