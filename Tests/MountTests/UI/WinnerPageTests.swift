import Posix
import TestSupport
import Testing

/// What the page of `bundlefs ui` shows, in a browser. `scripts/test --browser` enables these tests.
extension MountTests {
  @Suite(.enabled(if: Browser.program != nil, "scripts/test --browser runs these tests"))
  struct WinnerPageTests {
    @Test("the list shows winners; filters and the search limit it", .timeLimit(.minutes(4)))
    func list() throws {
      let shown = try ShownMount(["top", "middle"]) { main, layers in
        for name: ByteString in ["both.txt", "gone.txt", "kept.txt"] { try (main / name).write("main\n") }
        try (main / "folder").makeDirectory()
        try (main / "folder" / "inner.txt").write("main\n")
        for layer in layers { try (layer / "both.txt").write("\(layer.text)\n") }
        try (layers[0] / ".wh.gone.txt").write("")
        try (layers[1] / "new.txt").write("new\n")
      }
      try shown.wait(for: [
        "both.txt|overrides · 3 versions|top", "folder||main", "folder/inner.txt||main",
        "gone.txt|hidden|top", "kept.txt||main", "new.txt|adds|middle",
      ])
      for (verdict, rows) in [
        ("overridden", ["both.txt|overrides · 3 versions|top"]), ("added", ["new.txt|adds|middle"]),
        ("hidden", ["gone.txt|hidden|top"]), ("conflict", ["both.txt|overrides · 3 versions|top"]),
      ] {
        try shown.page.click("[name=verdict][value=\(verdict)]")
        try shown.wait(for: rows)
      }
      try shown.page.click("[name=verdict][value=all]")
      try shown.page.press("/")
      try shown.page.type("INNER")
      try shown.wait(for: ["folder||main", "folder/inner.txt||main"])
      try shown.end()
    }

    @Test("a file's versions stand side by side, with their difference", .timeLimit(.minutes(4)))
    func versions() throws {
      let shown = try ShownMount(["top"]) { main, layers in
        try (main / "style.css").write("a\nb\nc\n")
        try (layers[0] / "style.css").write("a\nB\nc\n")
        try (main / "raw.bin").write([0, 1, 2, 255])
        try (main / "empty").write("")
      }
      try shown.select("style.css")
      let cards = """
        [...document.querySelectorAll(".version")].map(card =>
          card.querySelector("strong").textContent + card.classList.contains("is-winner"))
        """
      #expect(try shown.page.texts(cards) == ["toptrue", "mainfalse"])
      let lines = """
        [...document.querySelectorAll(".lines tr")].map(row =>
          row.className + row.querySelector(".line-text").textContent)
        """
      #expect(try shown.page.texts(lines) == ["a", "is-minusb", "is-plusB", "c"])
      try shown.select("raw.bin")
      try shown.page.wait(
        "document.querySelector('.hex')?.textContent.startsWith('0000  00 01 02 ff ')")
      try shown.select("empty")
      try shown.end()
    }

    @Test("100,000 entries scroll without a blank row", .timeLimit(.minutes(8)))
    func large() throws {
      let shown = try ShownMount(["top"]) { main, layers in
        for folder in 0..<100 {
          let path = main / ByteString("folder\(folder)")
          try path.makeDirectory()
          for file in 0..<1000 { try (path / ByteString("file\(file)")).write("") }
        }
        try (layers[0] / "added").write("")
      }
      try shown.page.wait("document.getElementById('files-count').textContent === '100,101 entries'")
      // Each frame's rows must cover the list and be the ones of its position.
      let worst = try shown.page.number(
        """
        (async () => {
          const list = document.getElementById("files-list");
          const frame = () => new Promise(resolve => requestAnimationFrame(resolve));
          let blank = 0;
          for (let step = 0; step <= 400; step += 1) {
            list.scrollTop = step % 4 === 3 ? list.scrollHeight * step / 400 : list.scrollTop + 900;
            const box = list.getBoundingClientRect();
            const isRow = y => document.elementFromPoint(box.x + 60, y)?.closest(".entry");
            await frame();
            if (!isRow(box.y + 3) || !isRow(box.y + box.height / 2) || !isRow(box.y + box.height - 8)) blank += 1;
          }
          list.scrollTop = list.scrollHeight;
          await frame();
          await frame();
          const last = [...document.querySelectorAll(".entry:not([hidden])")].at(-1);
          return last.title === "folder99/file999" ? blank : -1;
        })()
        """)
      #expect(worst == 0)
      #expect(try shown.page.number("document.querySelectorAll('.entry').length") < 120)
      try shown.end()
    }
  }
}
