import Posix
import TestSupport
import Testing

/// `MOUNTPOINT/rsrc:/…`.
extension MountTests {
  @Suite struct ResourcePathTests {
    @Test("a URL is a path: from the root, in folders, in the right language", .timeLimit(.minutes(1)))
    func found() throws {
      let bundle = try BundleFixture()
      try withMount(bundle.setup()) { mount in
        for (url, content) in [
          ("rsrc:///logo.png", "main's logo"), ("rsrc:/logo.png", "main's logo"),
          ("rsrc:///images/icon.svg", "<svg/>"), ("rsrc:///Main.strings", "main's French"),
          ("rsrc:///en.lproj/Main.strings", "main's English"), ("rsrc:///help/index.html", "<p>aide</p>"),
          ("rsrc:///my page.html", "<p>space</p>"), ("rsrc:///my%20page.html", "<p>space</p>"),
          ("rsrc:///100%.txt", "percent"), ("rsrc:///100%25.txt", "percent"),
          ("rsrc:///Main.strings?localization=en", "main's English"), ("rsrc:///link.svg", "<svg/>"),
        ] {
          let outcome = try Command("cat", url, in: mount.point).run()
          #expect(outcome.outputText == content, "\(url): \(outcome.errorText)")
        }
      }
    }

    @Test("what is found is the file itself: one inode number, one set of pages", .timeLimit(.minutes(1)))
    func sameNode() throws {
      let bundle = try BundleFixture()
      try withMount(bundle.setup()) { mount in
        let file = mount.point / "Contents" / "Resources" / "fr.lproj" / "Main.strings"
        let resource = mount.resources / "Main.strings"
        #expect(try file.readText() == "main's French")
        let before = RequestCounts(try mount.report())
        #expect(try resource.readText() == "main's French")
        let after = RequestCounts(try mount.report())
        #expect(after["READ"] == before["READ"], "the pages are there already")
        let (one, other) = (try file.status(), try resource.status())
        #expect(one.inode == other.inode && one.device == other.device)
        #expect(try resource.attribute("user.bundlefs.path") == file.attribute("user.bundlefs.path"))
      }
    }

    @Test("the folder is not listed, and neither is a bundle's own of that name", .timeLimit(.minutes(1)))
    func unlisted() throws {
      let bundle = try BundleFixture()
      try (bundle.fixture.main / "rsrc:" / "own").put("hidden")
      try withMount(bundle.setup()) { mount in
        #expect(try !mount.point.names().contains("rsrc:"))
        try expectErrno(.noEntry) { _ = try (mount.resources / "own").read() }
        #expect(try (mount.resources / "logo.png").readText() == "main's logo")
      }
    }

    @Test("listings show what can be looked up, with the numbers that lookups give", .timeLimit(.minutes(1)))
    func listings() throws {
      let bundle = try BundleFixture()
      try bundle.put(["images/added.svg": "", "fr.lproj/images/own.svg": ""], in: bundle.substitution)
      try withMount(bundle.setup()) { mount in
        #expect(
          Set(try mount.resources.names()) == [
            "100%.txt", "Main.strings", "data", "en.lproj", "fr.lproj", "help", "images", "link.svg",
            "logo.png", "my page.html", "page.html",
          ])
        let images = mount.resources / "images"
        #expect(Set(try images.names()) == ["added.svg", "icon.svg", "icon@2x.png", "own.svg"])
        for folder in [mount.resources, images] {
          for entry in try folder.list() {
            #expect(try (folder / entry.name).status().inode == entry.inode, "\(entry.name)")
          }
        }
        try bundle.put(["images/later.svg": ""], in: bundle.substitution)
        #expect(try images.names().contains("later.svg"), "nothing is kept")
      }
    }

    @Test("always fresh: overrides, removals and other languages show at once", .timeLimit(.minutes(1)))
    func fresh() throws {
      let bundle = try BundleFixture()
      try withMount(bundle.setup()) { mount in
        let strings = mount.resources / "Main.strings"
        for round in 0..<20 {
          #expect(try strings.readText() == "main's French")
          try bundle.put(["en.lproj/Main.strings": "English \(round)"], in: bundle.substitution)
          #expect(try strings.readText() == "English \(round)")
          try bundle.put(["fr.lproj/Main.strings": "French \(round)"], in: bundle.substitution)
          #expect(try strings.readText() == "French \(round)")
          try bundle.put(["Main.strings": "any \(round)"], in: bundle.substitution)
          #expect(try strings.readText() == "any \(round)")
          for folder in ["", "en.lproj", "fr.lproj"] as [ByteString] {
            try (bundle.substitution / folder / "Main.strings").remove()
          }
        }
        try expectErrno(.noEntry) { _ = try (mount.resources / "new.txt").read() }
        try bundle.put(["new.txt": "new"], in: bundle.main)
        #expect(try (mount.resources / "new.txt").readText() == "new")
      }
    }

    @Test("a file that becomes a folder, and back, under a program's feet", .timeLimit(.minutes(1)))
    func kinds() throws {
      let bundle = try BundleFixture()
      try withMount(bundle.setup()) { mount in
        let thing = mount.resources / "thing"
        for _ in 0..<10 {
          try bundle.put(["thing": "file"], in: bundle.substitution)
          #expect(try thing.readText() == "file")
          try (bundle.substitution / "thing").remove()
          try bundle.put(["thing/inner": "inner"], in: bundle.substitution)
          #expect(try (thing / "inner").readText() == "inner")
          try (bundle.substitution / "thing" / "inner").remove()
          try (bundle.substitution / "thing").removeDirectory()
          try expectErrno(.noEntry) { _ = try thing.status() }
        }
      }
    }

    @Test(
      "evil names lead nowhere", .timeLimit(.minutes(1)),
      arguments: [
        ("outside", Errno.noEntry), ("climbing/passwd", .noEntry),
        ("..%2f..%2fetc%2fpasswd", .invalidArgument),
        ("%2e%2e", .invalidArgument), ("images/%2e%2e", .invalidArgument), ("logo.png%00", .invalidArgument),
        ("images%2ficon.svg", .noEntry), ("%zz", .noEntry), ("%", .noEntry), ("?", .noEntry),
        ("%2fetc%2fpasswd", .noEntry), ("logo.png/x", .notDirectory),
        ("Main.strings?localization=..%2f", .invalidArgument),
        ("Main.strings?localization=de", .noEntry), ("images?localization=en", .noEntry),
        ("..;/etc", .noEntry), ("\u{1}", .noEntry),
      ] as [(String, Errno)])
    func evil(name: String, error: Errno) throws {
      let bundle = try BundleFixture()
      try withMount(bundle.setup()) { mount in
        try expectErrno(error, "\(name)") { _ = try (mount.resources / ByteString(name)).read() }
        #expect(try (mount.resources / "logo.png").readText() == "main's logo")
      }
    }

    @Test("names of any bytes and lengths do no harm", .timeLimit(.minutes(1)))
    func anyBytes() throws {
      let bundle = try BundleFixture()
      try withMount(bundle.setup("scale=2")) { mount throws in
        var random = SplitMix64(seed: 5)
        let alphabet = Array("ab./-~@%2fFe0?&=# ".utf8) + [0xFF, 0x80]
        for _ in 0..<2000 {
          let count = [1, 2, 3, 8, 255].randomElement(using: &random) ?? 1
          let name = (0..<count).map { _ in alphabet.randomElement(using: &random) ?? 0 }
          _ = try? (mount.resources / ByteString(name)).status()
        }
        #expect(try (mount.resources / "logo.png").readText() == "main's logo")
      }
    }

    @Test("images: the variant for the screen, and folders called like one", .timeLimit(.minutes(1)))
    func variants() throws {
      let bundle = try BundleFixture()
      try bundle.put(
        ["images.png": "a picture", "icon.png": "plain", "icon@2x~ipad.png": "pad"], in: bundle.main)
      try withMount(bundle.setup("scale=2", "idiom=pad")) { mount in
        #expect(try (mount.resources / "images" / "icon.png").readText() == "main's icon")
        #expect(try (mount.resources / "icon").readText() == "pad")
        #expect(try (mount.resources / "images").status().kind == .directory)
        try bundle.put(["icon@2x~ipad.png": "my pad"], in: bundle.substitution)
        #expect(try (mount.resources / "icon.png").readText() == "my pad")
      }
    }

    @Test("nothing can be made or changed there", .timeLimit(.minutes(1)))
    func readOnly() throws {
      let bundle = try BundleFixture()
      try withMount(bundle.setup()) { mount in
        try expectErrno(.readOnlyFileSystem) { try (mount.resources / "new").makeDirectory() }
        try expectErrno(.readOnlyFileSystem) { try (mount.resources / "new").write("x") }
        try expectErrno(.readOnlyFileSystem) { try (mount.resources / "logo.png").remove() }
        try expectErrno(.readOnlyFileSystem) { try mount.resources.setMode(0o777) }
      }
    }

    @Test("a scheme of one's own", .timeLimit(.minutes(1)))
    func scheme() throws {
      let bundle = try BundleFixture()
      try withMount(bundle.setup("resource_scheme=App.Res")) { mount in
        #expect(try (mount.point / "app.res:" / "logo.png").readText() == "main's logo")
        try expectErrno(.noEntry) { _ = try (mount.resources / "logo.png").read() }
        try mount.say("APP.RES:///logo.png")
        #expect(try mount.lastResult().verdict == "resolved")
      }
    }

    @Test(
      "without the coherent cache, too", .timeLimit(.minutes(1)), arguments: ["cache=none", "cache=3600"])
    func cacheModes(mode: String) throws {
      let bundle = try BundleFixture()
      try withMount(bundle.setup(ByteString(mode))) { mount in
        #expect(try (mount.resources / "images" / "icon.svg").readText() == "<svg/>")
        try bundle.put(["images/icon.svg": "mine"], in: bundle.substitution)
        #expect(try (mount.resources / "images" / "icon.svg").readText() == "mine")
      }
    }

    @Test("no way past a directory's permissions", .timeLimit(.minutes(1)))
    func permissions() throws {
      let bundle = try BundleFixture()
      try bundle.put(["private/secret.txt": "secret", "open/plain.txt": "plain"], in: bundle.main)
      try (bundle.main / "private").setMode(0o700)
      try withMount(bundle.setup("allow_other", "routes_mode=666")) { mount in
        #expect(try (mount.resources / "private" / "secret.txt").readText() == "secret")
        let outcome = try mount.bash(
          """
          cat "$M/rsrc:/open/plain.txt"; cat "$M/rsrc:/private/secret.txt"
          echo rsrc:///open/plain.txt > "$R"; echo rsrc:///private/secret.txt > "$R"
          """, user: UserTests.nobody)
        #expect(outcome.outputText == "plain")
        let messages = outcome.errorText.split(separator: "\n")
        #expect(messages.count == 2 && messages.allSatisfy { $0.hasSuffix("Permission denied") })
        #expect(try mount.routesText().verdicts == ["resolved", "rejected EACCES"])
      }
    }

    @Test("folders are forgotten when nobody uses them", .timeLimit(.minutes(1)))
    func forgotten() throws {
      let bundle = try BundleFixture()
      for place in 0..<50 { try bundle.put(["f\(place)/g/file": "\(place)"], in: bundle.main) }
      try withMount(bundle.setup()) { mount in
        for round in 0..<3 {
          for place in 0..<50 {
            let file = mount.resources / ByteString("f\(place)") / "g" / "file"
            #expect(try file.readText() == "\(place)", "round \(round)")
          }
          try ByteString("/proc/sys/vm/drop_caches").write("2")
        }
        #expect(try (mount.resources / "f1" / "g").names() == ["file"])
      }
    }
  }
}
