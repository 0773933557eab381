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
        try expectErrno(.noSuchFileOrDirectory) { _ = try (mount.resources / "own").read() }
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
        try expectErrno(.noSuchFileOrDirectory) { _ = try (mount.resources / "new.txt").read() }
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
          try expectErrno(.noSuchFileOrDirectory) { _ = try thing.status() }
        }
      }
    }

    @Test(
      "evil names lead nowhere", .timeLimit(.minutes(1)),
      arguments: [
        ("outside", Errno.noSuchFileOrDirectory), ("climbing/passwd", .noSuchFileOrDirectory),
        ("..%2f..%2fetc%2fpasswd", .invalidArgument),
        ("%2e%2e", .invalidArgument), ("images/%2e%2e", .invalidArgument), ("logo.png%00", .invalidArgument),
        ("images%2ficon.svg", .noSuchFileOrDirectory), ("%zz", .noSuchFileOrDirectory),
        ("%", .noSuchFileOrDirectory), ("?", .noSuchFileOrDirectory),
        ("%2fetc%2fpasswd", .noSuchFileOrDirectory), ("logo.png/x", .notDirectory),
        ("Main.strings?localization=..%2f", .invalidArgument),
        ("Main.strings?localization=de", .noSuchFileOrDirectory),
        ("images?localization=en", .noSuchFileOrDirectory),
        ("..;/etc", .noSuchFileOrDirectory), ("\u{1}", .noSuchFileOrDirectory),
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
        try expectErrno(.noSuchFileOrDirectory) { _ = try (mount.resources / "logo.png").read() }
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

    @Test("no way past permissions, for files, folders and their names", .timeLimit(.minutes(1)))
    func permissions() throws {
      let bundle = try BundleFixture()
      try bundle.put(
        [
          "private/secret.txt": "secret", "private/inner/deep.txt": "deep", "open/plain.txt": "plain",
          "open/mine.txt": "mine", "unlisted/known.txt": "known",
        ], in: bundle.main)
      try (bundle.main / "private").setMode(0o700)
      try (bundle.main / "unlisted").setMode(0o711)
      try (bundle.main / "open" / "mine.txt").setMode(0o600)
      try (bundle.main / "open" / "way").makeLink(to: "../private")
      try withMount(bundle.setup("allow_other", "routes_mode=666")) { mount in
        #expect(try (mount.resources / "private" / "secret.txt").readText() == "secret")
        #expect(try (mount.resources / "open" / "way" / "inner" / "deep.txt").readText() == "deep")
        let outcome = try mount.bash(
          """
          cd "$M" && cat rsrc:/open/plain.txt rsrc:/unlisted/known.txt; echo; ls rsrc:/open rsrc:/unlisted
          for path in private private/secret.txt private/nosuch open/way open/way/secret.txt private/inner; do
            stat -c found rsrc:/$path; done
          cat rsrc:/open/mine.txt; find rsrc:/ | grep -c -e secret -e deep -e known
          """, user: UserTests.nobody)
        #expect(
          outcome.outputText
            == "plainknown\nrsrc:/open:\nmine.txt\nplain.txt\nway\n\nrsrc:/unlisted:\nfound\nfound\n0\n",
          "that a folder is there is no secret, what it holds is")
        let messages = outcome.errorText.split(separator: "\n")
        #expect(messages.count == 5, "\(outcome.errorText)")
        #expect(messages.filter { $0.hasSuffix("No such file or directory") }.count == 4)
        #expect(messages.last?.hasSuffix("Permission denied") == true)
      }
    }

    @Test("the control file tells nobody what he could not open", .timeLimit(.minutes(1)))
    func controlPermissions() throws {
      let bundle = try BundleFixture()
      try bundle.put(["private/secret.txt": "secret", "mine.txt": "mine"], in: bundle.main)
      try (bundle.main / "private").setMode(0o700)
      try (bundle.main / "mine.txt").setMode(0o600)
      try withMount(bundle.setup("allow_other", "routes_mode=666")) { mount in
        let script = """
          for path in logo.png private/secret.txt private/nosuch private mine.txt; do
            echo rsrc:///$path > "$R"; done
          """
        _ = try mount.bash(script, user: UserTests.nobody)
        #expect(
          try mount.routesText().verdicts == [
            "resolved", "rejected ENOENT", "rejected ENOENT", "rejected EACCES", "rejected EACCES",
          ])
        _ = try mount.bash(script)
        #expect(
          try mount.routesText().verdicts.suffix(5) == [
            "resolved", "resolved", "rejected ENOENT", "resolved", "resolved",
          ])
      }
    }

    @Test("links that go in circles end somewhere, for find and du as well", .timeLimit(.minutes(1)))
    func circles() throws {
      let bundle = try BundleFixture()
      try (bundle.main / "here").makeLink(to: ".")
      try (bundle.main / "images" / "up").makeLink(to: "..")
      try bundle.put(["one/a": "", "two/b": ""], in: bundle.main)
      try (bundle.main / "one" / "other").makeLink(to: "../two")
      try (bundle.main / "two" / "other").makeLink(to: "../one")
      try withMount(bundle.setup()) { mount in
        let names = try mount.resources.names()
        #expect(!names.contains("here") && names.contains("one"))
        #expect(try !(mount.resources / "images").names().contains("up"))
        #expect(try (mount.resources / "one" / "other" / "b").status().kind == .regular)
        let found = try Command("find", "rsrc:/", in: mount.point).run(timeout: 20)
        #expect(found.outputText.split(separator: "\n").count < 60)
        #expect(try Command("du", "-s", "rsrc:/", in: mount.point).run(timeout: 20).status <= 1)
      }
    }

    @Test("programs that copy find nothing that changes under their hands", .timeLimit(.minutes(1)))
    func copying() throws {
      let bundle = try BundleFixture()
      try withMount(bundle.setup()) { mount in
        let archive = bundle.fixture.folder / "archive.tar"
        let packed = try Command(["tar", "-C", mount.point, "-cf", archive, "rsrc:"]).run()
        #expect(packed.status == 0, "\(packed.errorText)")
        let copy = bundle.fixture.folder / "copy"
        try Command(["cp", "-r", mount.resources, copy]).check()
        #expect(try (copy / "Main.strings").readText() == "main's French")
        #expect(try (copy / "images" / "icon.svg").readText() == "<svg/>")
      }
    }

    @Test("a flat bundle's own files of our names are no resources", .timeLimit(.minutes(1)))
    func ownNames() throws {
      let fixture = try Fixture()
      try (fixture.main / ".routes").write("not seen")
      try (fixture.main / "rsrc:" / "inner.txt").put("not seen either")
      try withMount(fixture.setup) { mount in
        #expect(try mount.resources.names() == ["folder", "link", "only", "plain.txt", "replaced.txt"])
        for name in [".routes", "rsrc:", "rsrc:/inner.txt"] as [ByteString] {
          try expectErrno(.noSuchFileOrDirectory, "\(name)") { _ = try (mount.resources / name).status() }
          try expectErrno(.noSuchFileOrDirectory, "\(name)") { try mount.say("rsrc:///\(name)") }
        }
      }
    }

    @Test("a folder is found by its own name only, not as the variant of an image", .timeLimit(.minutes(1)))
    func folderVariants() throws {
      let bundle = try BundleFixture()
      try bundle.put(["thing.png/inner": "inner", "pic@2x.png/x": "", "pic.png": "picture"], in: bundle.main)
      try withMount(bundle.setup("scale=2")) { mount in
        #expect(try (mount.resources / "thing.png" / "inner").readText() == "inner")
        try expectErrno(.noSuchFileOrDirectory) { _ = try (mount.resources / "thing").status() }
        #expect(try (mount.resources / "pic").readText() == "picture")
      }
    }

    @Test("a large folder is listed at once, by several at a time", .timeLimit(.minutes(1)))
    func largeFolder() throws {
      let bundle = try BundleFixture()
      let folder = bundle.main / "many"
      try folder.makeDirectory()
      for number in 0..<5000 { try (folder / ByteString("name\(number)")).write("") }
      try withMount(bundle.setup()) { mount in
        let outcome = try Command.shell(
          "cd \"$1\" && for n in 1 2 3 4; do ls -f rsrc:/many | sort | md5sum & done; wait", mount.point
        ).check(timeout: 40)
        #expect(Set(outcome.outputText.split(separator: "\n")).count == 1)
        #expect(try (mount.resources / "many").names().count == 5000)
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
