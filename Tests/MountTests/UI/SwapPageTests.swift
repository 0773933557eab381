import Posix
import TestSupport
import Testing

/// What can be changed in the page of `bundlefs ui`, in a browser. `scripts/test --browser` enables these tests.
extension MountTests {
  @Suite(.enabled(if: Browser.program != nil, "scripts/test --browser runs these tests"))
  struct SwapPageTests {
    private func show() throws -> ShownMount {
      try ShownMount(["top", "middle"]) { main, layers in
        try (main / "a.txt").write("main\n")
        try (main / "b.txt").write("main\n")
        try (layers[0] / "a.txt").write("top\n")
        try (layers[1] / "b.txt").write("middle\n")
      }
    }

    @Test("a revert, its undo, an override and a dropped file", .timeLimit(.minutes(4)))
    func swap() throws {
      let shown = try show()
      let (page, a) = (shown.page, shown.mount.point / "a.txt")
      try shown.select("a.txt")
      try page.click("[data-part=revert]")
      try shown.wait(for: ["a.txt||main", "b.txt|overrides|middle"])
      #expect(try a.readText() == "main\n")
      #expect(try page.text("document.getElementById('undo-text').textContent") == "Reverted a.txt")
      try page.click("#undo-button")
      try shown.wait(for: ["a.txt|overrides|top", "b.txt|overrides|middle"])
      #expect(try a.readText() == "top\n")

      try shown.select("b.txt")
      try page.click("[data-part=override]")
      try shown.wait(for: ["a.txt|overrides|top", "b.txt|overrides · 3 versions|top"])
      #expect(try (shown.layers[0] / "b.txt").readText() == "middle\n")
      try page.drop("dropped\n", named: "other.txt", on: "#file")
      #expect(try eventually(within: 30) { try (shown.mount.point / "b.txt").readText() == "dropped\n" })
      try page.wait("document.getElementById('undo-text').textContent === 'Replaced b.txt'")
      try page.drop("fresh\n", named: "new.txt", on: "#files-list")
      try shown.wait(for: ["a.txt|overrides|top", "b.txt|overrides · 3 versions|top", "new.txt|adds|top"])
      try shown.end()
    }

    @Test("layers are switched, and reordered by the keyboard and by dragging", .timeLimit(.minutes(4)))
    func layers() throws {
      let shown = try show()
      let page = shown.page
      try shown.wait(forLayers: "1 top,2 middle,M main")
      try page.click(".layer:nth-child(2) .switch")
      try shown.wait(for: ["a.txt|overrides|top", "b.txt||main"])
      try shown.wait(forLayers: "1 top,2 middle off,M main")
      try page.click(".layer:nth-child(2) .switch")
      try shown.wait(for: ["a.txt|overrides|top", "b.txt|overrides|middle"])
      try shown.wait(forLayers: "1 top,2 middle,M main")

      _ = try page.text("document.querySelector('.layer .grip').focus()")
      try page.press(" ", "ArrowDown")
      try page.wait("document.getElementById('announcer').textContent === 'Moved top: position 2 of 2.'")
      try page.press(" ")
      try shown.wait(forLayers: "1 middle,2 top,M main")
      try page.drag(".layer:nth-child(2) .grip", to: ".layer:nth-child(1) .grip")
      try shown.wait(forLayers: "1 top,2 middle,M main")
      #expect(try (shown.mount.point / "a.txt").readText() == "top\n")
      // A server of another user can have this port later, and would read it.
      #expect(try page.number("localStorage.length") == 0)
      try shown.end()
    }

    @Test("a change in a layer flashes in two pages at once", .timeLimit(.minutes(4)))
    func live() throws {
      let shown = try show()
      try shown.page.usePage(1)
      try shown.page.load("\(shown.address)")
      try shown.page.wait(ShownMount.isLoaded)
      try (shown.layers[1] / "d.txt").write("middle\n")
      try (shown.layers[0] / "c.txt").write("top\n")
      let isFlashing = "document.querySelector('.entry[title=\"c.txt\"].is-flashing')"
      for number in [1, 0] {
        try shown.page.usePage(number)
        // The first page may show it only after its flash, when the second one has been waited for.
        if number == 1 { try shown.page.wait(isFlashing) }
        try shown.wait(for: [
          "a.txt|overrides|top", "b.txt|overrides|middle", "c.txt|adds|top", "d.txt|adds|middle",
        ])
        try shown.page.wait("document.querySelector('#feed .path[title=\"c.txt\"]')")
      }
      try (shown.layers[0] / "c.txt").remove()
      try shown.wait(for: ["a.txt|overrides|top", "b.txt|overrides|middle", "d.txt|adds|middle"])
      try shown.end()
    }

    @Test("everything by the keyboard alone", .timeLimit(.minutes(4)))
    func keyboard() throws {
      let shown = try show()
      let page = shown.page
      try page.press("/")
      try page.type("b")
      try page.press("Enter", "ArrowDown", "Enter")
      try page.wait("document.querySelector('#file h2')?.textContent === 'b.txt'")
      for _ in 0..<12 {
        if try page.text("document.activeElement.dataset.part") == "hide" { break }
        try page.press("Tab")
      }
      try page.press("Enter")
      try shown.wait(for: ["b.txt|hidden|top"])
      #expect(!(shown.mount.point / "b.txt").exists)
      try page.press("Control+z")
      try shown.wait(for: ["b.txt|overrides|middle"])
      #expect(try (shown.mount.point / "b.txt").readText() == "middle\n")
      try shown.end()
    }
  }
}
