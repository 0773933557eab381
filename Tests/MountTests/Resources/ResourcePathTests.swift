import Posix
import TestSupport
import Testing

/// Paths below `MOUNTPOINT/rsrc:`.
extension MountTests.ExclusiveTests {
  @Suite struct ResourcePathTests {
    @Test("a resource URL is a path: at the root, in folders, and localized", .timeLimit(.minutes(1)))
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

    @Test(
      "a resource path leads to the file itself: same inode number, shared page cache",
      .timeLimit(.minutes(1)))
    func sameInode() throws {
      let bundle = try BundleFixture()
      try withMount(bundle.setup()) { mount in
        let file = mount.point / "Contents" / "Resources" / "fr.lproj" / "Main.strings"
        let resource = mount.resources / "Main.strings"
        #expect(try file.readText() == "main's French")
        let before = RequestCounts(try mount.report())
        #expect(try resource.readText() == "main's French")
        let after = RequestCounts(try mount.report())
        #expect(after["READ"] == before["READ"], "the pages are cached already")
        let (one, other) = (try file.status(), try resource.status())
        #expect(one.inode == other.inode && one.device == other.device)
        #expect(try resource.attribute("user.bundlefs.path") == file.attribute("user.bundlefs.path"))
      }
    }

    @Test(
      "the resource folder is not listed and hides a bundle's entry of that name", .timeLimit(.minutes(1)))
    func unlisted() throws {
      let bundle = try BundleFixture()
      try (bundle.fixture.main / "rsrc:" / "own").put("hidden")
      try withMount(bundle.setup()) { mount in
        #expect(try !mount.point.names().contains("rsrc:"))
        try expectErrno(.noSuchFileOrDirectory) { _ = try (mount.resources / "own").read() }
        #expect(try (mount.resources / "logo.png").readText() == "main's logo")
      }
    }

    @Test("listings have the names and inode numbers that lookups have", .timeLimit(.minutes(1)))
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
        #expect(try images.names().contains("later.svg"), "listings are not cached")
      }
    }

    @Test("overrides, removals and other languages are visible at once", .timeLimit(.minutes(1)))
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

    @Test("a resource changes between file and folder", .timeLimit(.minutes(1)))
    func typeChanges() throws {
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
      "images resolve to the variant for the screen, and folders may have an image's name",
      .timeLimit(.minutes(1)))
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

    @Test("resource_scheme sets the scheme", .timeLimit(.minutes(1)))
    func scheme() throws {
      let bundle = try BundleFixture()
      try withMount(bundle.setup("resource_scheme=App.Res")) { mount in
        #expect(try (mount.point / "app.res:" / "logo.png").readText() == "main's logo")
        try expectErrno(.noSuchFileOrDirectory) { _ = try (mount.resources / "logo.png").read() }
        try mount.writeControl("APP.RES:///logo.png")
        #expect(try mount.lastResult().summary == "resolved")
      }
    }

    @Test(
      "resources are current without coherent caching", .timeLimit(.minutes(1)),
      arguments: ["cache=none", "cache=3600"])
    func cacheModes(mode: String) throws {
      let bundle = try BundleFixture()
      try withMount(bundle.setup(ByteString(mode))) { mount in
        #expect(try (mount.resources / "images" / "icon.svg").readText() == "<svg/>")
        try bundle.put(["images/icon.svg": "mine"], in: bundle.substitution)
        #expect(try (mount.resources / "images" / "icon.svg").readText() == "mine")
      }
    }

    @Test("cyclic links terminate, also for find and du", .timeLimit(.minutes(1)))
    func cyclicLinks() throws {
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

    @Test("tar and cp copy the resource folder without errors", .timeLimit(.minutes(1)))
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

    @Test("a flat bundle's own `.routes` and `rsrc:` are not resources", .timeLimit(.minutes(1)))
    func reservedNames() throws {
      let fixture = try Fixture()
      try (fixture.main / ".routes").write("not seen")
      try (fixture.main / "rsrc:" / "inner.txt").put("not seen either")
      try withMount(fixture.setup) { mount in
        #expect(try mount.resources.names() == ["folder", "link", "only", "plain.txt", "replaced.txt"])
        for name in [".routes", "rsrc:", "rsrc:/inner.txt"] as [ByteString] {
          try expectErrno(.noSuchFileOrDirectory, "\(name)") { _ = try (mount.resources / name).status() }
          try expectErrno(.noSuchFileOrDirectory, "\(name)") { try mount.writeControl("rsrc:///\(name)") }
        }
      }
    }

    @Test("a folder is found by its exact name only, not as an image variant", .timeLimit(.minutes(1)))
    func folderVariants() throws {
      let bundle = try BundleFixture()
      try bundle.put(["thing.png/inner": "inner", "pic@2x.png/x": "", "pic.png": "picture"], in: bundle.main)
      try withMount(bundle.setup("scale=2")) { mount in
        #expect(try (mount.resources / "thing.png" / "inner").readText() == "inner")
        try expectErrno(.noSuchFileOrDirectory) { _ = try (mount.resources / "thing").status() }
        #expect(try (mount.resources / "pic").readText() == "picture")
      }
    }

    @Test("a large folder is listed concurrently", .timeLimit(.minutes(1)))
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

    @Test("resource folders are evicted with the kernel's caches and found again", .timeLimit(.minutes(1)))
    func evicted() throws {
      let bundle = try BundleFixture()
      for number in 0..<50 { try bundle.put(["f\(number)/g/file": "\(number)"], in: bundle.main) }
      try withMount(bundle.setup()) { mount in
        for round in 0..<3 {
          for number in 0..<50 {
            let file = mount.resources / ByteString("f\(number)") / "g" / "file"
            #expect(try file.readText() == "\(number)", "round \(round)")
          }
          try ByteString("/proc/sys/vm/drop_caches").write("2")
        }
        #expect(try (mount.resources / "f1" / "g").names() == ["file"])
      }
    }
  }
}
