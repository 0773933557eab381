import FoundationEssentials
import Glibc
import Posix
import Routing
import TestSupport
import Testing

/// Layers that are laid at a folder of the mount (`PATH@/FOLDER`).
extension MountTests {
  @Suite struct LaidLayerTests {
    @Test("a folder and an archive appear at their folders", .timeLimit(.minutes(1)))
    func shown() throws {
      let fixture = try LaidFixture()
      try withMount(try fixture.setup("mod@/Data", "pack.zip@/Data/Sub", "icon@2x")) { mount in
        let view = mount.point
        #expect(try view.names() == ["Data", "game", "two"])
        #expect(try (view / "Data").names() == ["Sub", "both", "main", "mod"])
        #expect(try (view / "Data/both").readText() == "mod" && (view / "Data/main").readText() == "main")
        #expect(try (view / "Data/Sub").names() == ["deep", "packed"])
        #expect(try (view / "Data/both").attribute("user.bundlefs.path") == (fixture.mod / "both").bytes)
        #expect(try (view / "Data/both").attribute("user.bundlefs.layer") == (fixture.mod + "@/Data").bytes)
        let packed = try (view / "Data/Sub/packed").attribute("user.bundlefs.path")
        #expect(packed == (fixture.pack + "!/packed").bytes)
        #expect(try (view / "Data").attribute("user.bundlefs.path") == fixture.mod.bytes)
      }
    }

    @Test(
      "the folders above have the mount's owner and the times of the layer's root", .timeLimit(.minutes(1)))
    func above() throws {
      let fixture = try LaidFixture()
      try fixture.mod.setMode(0o700)
      try fixture.mod.setOwner(1000, group: 1001)
      try fixture.mod.setModified(TimeSpec(seconds: 1_000_000_000, nanoseconds: 5))
      try withMount(try fixture.setup("mod@/only/here")) { mount in
        let status = try (mount.point / "only").status()
        #expect(status.permissions == 0o755 && status.owner == geteuid() && status.group == getegid())
        #expect(status.modified == TimeSpec(seconds: 1_000_000_000, nanoseconds: 5))
        #expect(try (mount.point / "only/here").status().permissions == 0o700)
        try mount.killWorker()
        #expect(try (mount.point / "only").status().modified.seconds == 1_000_000_000)
        #expect(try (mount.point / "only/here/mod").readText() == "mod")
      }
    }

    @Test("the folders above give and take no rights", .timeLimit(.minutes(1)))
    func rights() throws {
      let fixture = try LaidFixture()
      let (secret, shared) = (fixture.main / "secret", fixture.main / "shared")
      for folder in [secret, shared] { try folder.makeDirectory() }
      try (secret / "key").write("key")
      try secret.setMode(0o700)
      try shared.setMode(0o1777)
      try shared.setAttribute("user.k", Array("v".utf8))
      try fixture.mod.setOwner(1000, group: 1000)
      var setup = try fixture.setup("mod@/secret/in", "mod@/shared/in")
      setup.options = ["allow_other", "writable=" + (fixture.folder / "upper")]
      try withMount(setup) { mount in
        let view = mount.point
        func run(_ script: String) throws -> Int {
          try Command.shell(script, view).asUser(1000).run().status
        }
        #expect(try run(#"cat "$1/secret/key" || ls "$1/secret" || chmod 777 "$1/secret""#) != 0)
        #expect(try run(#"echo new > "$1/shared/new""#) == 0)
        #expect(try run(#"rmdir "$1/shared""#) != 0)
        for folder in [view / "shared", fixture.folder / "upper/shared"] {
          let status = try folder.status()
          #expect(status.permissions == 0o1777 && status.owner == geteuid(), "\(folder)")
          #expect(try folder.attribute("user.k") == Array("v".utf8))
        }
        #expect(try (view / "secret").status().permissions == 0o700)
        #expect(try (view / "secret").attribute("user.bundlefs.layer") == fixture.main.bytes)
      }
    }

    @Test("changes show at once, and whiteouts and opaque folders hide", .timeLimit(.minutes(1)))
    func live() throws {
      let fixture = try LaidFixture()
      try withMount(try fixture.setup("mod@/Data", "pack.zip@/Data/Sub")) { mount in
        let data = mount.point / "Data"
        _ = try data.names()
        try (fixture.mod / "both").remove()
        try (fixture.mod / ".wh.main").write("")
        try (fixture.mod / "new").write("new")
        try mount.barrier()
        #expect(try data.names() == ["Sub", "both", "mod", "new"] && (data / "both").readText() == "main")
        try (fixture.mod / ".wh..wh..opq").write("")
        try mount.barrier()
        #expect(try data.names() == ["mod", "new"])
        try (fixture.mod / ".wh..wh..opq").remove()
        try fixture.writePack([.init("packed", "again"), .init("more", "more")])
        try mount.barrier()
        #expect(try (data / "Sub").names() == ["deep", "more", "packed"])
        #expect(try (data / "Sub/packed").readText() == "again")
      }
    }

    @Test("a root that is renamed away and comes back is followed", .timeLimit(.minutes(1)))
    func replaced() throws {
      let fixture = try LaidFixture()
      try withMount(try fixture.setup("mod@/Data")) { mount in
        let data = mount.point / "Data"
        #expect(try (data / "both").readText() == "mod")
        try fixture.mod.rename(to: fixture.folder / "away")
        try mount.barrier()
        #expect(try data.names() == ["Sub", "both", "main"] && (data / "both").readText() == "main")
        try fixture.mod.makeDirectory()
        try (fixture.mod / "again").write("again")
        try mount.barrier()
        #expect(try data.names() == ["Sub", "again", "both", "main"])
      }
    }

    @Test("where case does not count, no layer is laid at a folder", .timeLimit(.minutes(1)))
    func folded() throws {
      let fixture = try LaidFixture()
      var setup = try fixture.setup("icon@2x")
      setup.options = ["case=insensitive"]
      try withMount(setup) { mount throws in
        for layer in ["mod@/dATA", "pack.zip@/data/sUB"] as [ByteString] {
          let outcome = try fixture.run("layers", [mount.point, "add", layer])
          #expect(
            outcome.status == 1 && outcome.errorText.contains("cannot be combined"), "\(outcome.errorText)")
        }
        #expect(try mount.point.names() == ["Data", "game", "two"])
      }
      var other = try fixture.setup("mod@/dATA")
      other.options = ["case=insensitive"]
      let outcome = try other.command(foreground: true).run(timeout: 30)
      #expect(outcome.status == 2 && outcome.errorText.contains("cannot be combined"), "\(outcome.errorText)")
    }

    @Test("tables of strings are merged across folders", .timeLimit(.minutes(1)))
    func tables() throws {
      let fixture = try LaidFixture()
      try (fixture.main / "Data/T.strings").write("\"a\" = \"main\";\n\"b\" = \"main\";\n")
      try (fixture.mod / "T.strings").write("\"a\" = \"mod\";\n")
      var setup = try fixture.setup("mod@/Data")
      setup.options = ["strings=merge"]
      try withMount(setup) { mount in
        let table = try (mount.point / "Data/T.strings").readText()
        #expect(table.contains("\"a\" = \"mod\";") && table.contains("\"b\" = \"main\";"))
      }
    }

    @Test("the page shows where a layer is laid, and what it has", .timeLimit(.minutes(1)))
    func page() throws {
      let fixture = try LaidFixture()
      try withMount(try fixture.setup("mod@/Data", "pack.zip@/Data/Sub")) { mount in
        let server = try PageServer(mount)
        guard case .array(let layers) = try server.json("/api/mounts/0/layers") else {
          return #expect(Bool(false))
        }
        #expect(layers.map { $0["place"]?.string } == ["Data", "Data/Sub", nil])
        func contents(_ path: String) throws -> [String] {
          guard case .array(let found) = try server.json("/api/mounts/0/versions?path=\(path)")["versions"]
          else { throw TestFailure("no versions") }
          return try found.map { try server.client.get($0["content"]?.string ?? "").text }
        }
        #expect(try contents("Data/both") == ["mod", "main"])
        #expect(try contents("Data/Sub/packed") == ["packed"])
        let address = PercentCoding.encoded(path: (fixture.mod + "@/Data/Sub").bytes)
        let reply = try server.client.post("/api/mounts/0/layers", "{\"encodedLayers\":[\"\(address)\"]}")
        #expect(reply.status == 200, "\(reply.text)")
        #expect(try (mount.point / "Data/Sub").names() == ["both", "deep", "mod"])
      }
    }

    @Test("commands add, name, move and list such layers", .timeLimit(.minutes(1)))
    func commands() throws {
      let fixture = try LaidFixture()
      try withMount(try fixture.setup()) { mount in
        func layers(_ words: ByteString...) throws {
          let outcome = try fixture.run("layers", [mount.point] + words)
          #expect(outcome.status == 0, "\(words): \(outcome.errorText)")
        }
        try layers("add", "mod", "--at", "/Data/", "--bottom")
        try layers("add", "mod", "--at", "Data/Sub")
        try layers("add", "pack.zip@/Data/Sub")
        #expect(
          try mount.layers() == [
            "\(fixture.pack)@/Data/Sub", "\(fixture.mod)@/Data/Sub", "\(fixture.mod)@/Data",
            "\(fixture.main)",
          ])
        try layers("move", "mod@/Data", "--top")
        let ambiguous = try fixture.run("layers", [mount.point, "remove", "mod"])
        #expect(ambiguous.status == 1 && ambiguous.errorText.contains("ambiguous"), "\(ambiguous.errorText)")
        try layers("remove", "mod@/Data/Sub")
        try layers("remove", "mod")
        let list = try fixture.run("layers", [mount.point, "--json"]).outputText
        #expect(list.contains(#""place":"Data/Sub""#) && list.contains(#""place":null"#), "\(list)")
        let compared = try fixture.run("diff", [mount.point]).outputText
        #expect(compared.contains("adds       Data/Sub/packed"), "\(compared)")
        try mount.killWorker()
        #expect(try (mount.point / "Data/Sub/packed").readText() == "packed")
        let upgrade = try fixture.run("upgrade", [mount.point])
        #expect(upgrade.status == 0, "\(upgrade.errorText)")
        #expect(try (mount.point / "Data/Sub/packed").readText() == "packed")
        try layers("set", "mod@/a\\:b\\,c")
        #expect(try (mount.point / "a:b,c/mod").readText() == "mod")
      }
    }

    @Test("an existing path with '@/' is written with a backslash", .timeLimit(.minutes(1)))
    func escaped() throws {
      let fixture = try LaidFixture()
      let odd = try fixture.folder.folder("me@/mods")
      let unescaped = try MountSetup(
        main: fixture.main, point: fixture.folder.folder("mount"), substitutions: [odd]
      ).command(foreground: true).run(timeout: 30)
      #expect(unescaped.status == 1 && unescaped.errorText.contains("me\\@/mods"), "\(unescaped.errorText)")
      try (odd / "odd").write("odd")
      let options = "substitution=\(fixture.folder.path)/me\\@/mods:\(fixture.mod)@/Data"
      var setup = try fixture.setup()
      setup.options = [ByteString(options)]
      try withMount(setup) { mount in
        #expect(try mount.point.names() == ["Data", "game", "odd"])
        let upgrade = try fixture.run("upgrade", [mount.point])
        #expect(upgrade.status == 0, "\(upgrade.errorText)")
        #expect(try mount.point.names() == ["Data", "game", "odd"])
        #expect(try mount.layers() == ["\(odd)", "\(fixture.mod)@/Data", "\(fixture.main)"])
        let outcome = try fixture.run("layers", [mount.point, "remove", "me\\@/mods"])
        #expect(outcome.status == 0, "\(outcome.errorText)")
        #expect(try mount.point.names() == ["Data", "game"])
      }
    }

    @Test("what cannot be is refused, and names the reason", .timeLimit(.minutes(1)))
    func refused() throws {
      let fixture = try LaidFixture()
      func expectRefusal(_ options: String, _ reason: String) throws {
        var setup = try fixture.setup()
        setup.options = [ByteString(options)]
        let outcome = try setup.command(foreground: true).run(timeout: 30)
        #expect(outcome.status == 2 && outcome.errorText.contains(reason), "\(options): \(outcome.errorText)")
      }
      try expectRefusal("writable=\(fixture.mod)@/Data", "is laid at 'Data', so it cannot take the changes")
      try expectRefusal("writable,substitution=\(fixture.mod)@/Data", "is laid at 'Data'")
      try expectRefusal("substitution=\(fixture.mod)@/", "must be followed by a folder")
      try expectRefusal("substitution=\(fixture.mod)@/../x", "no folder of the mount can be named '..'")
      try withMount(try fixture.setup("mod@/Data")) { mount in
        let file = mount.point / "Data/both"
        for (command, words) in [("override", [file]), ("revert", [file, "--yes"]), ("apply", ["--yes"])] {
          let outcome = try fixture.run(ByteString(command), [mount.point] + words)
          #expect(
            outcome.status == 1 && outcome.errorText.contains("is laid at 'Data'"), "\(outcome.errorText)")
        }
        #expect(try (fixture.mod / "both").readText() == "mod")
        let both = try fixture.run("layers", [mount.point, "add", "pack.zip@/a", "--at", "b"])
        #expect(both.status == 2 && both.errorText.contains("--at"), "\(both.errorText)")
        let set = try fixture.run("layers", [mount.point, "move", "mod", "--top", "--at", "b"])
        #expect(set.status == 2 && set.errorText.contains("--at"), "\(set.errorText)")
      }
    }

    @Test("a writable mount copies the folders above up as they show", .timeLimit(.minutes(1)))
    func writable() throws {
      let fixture = try LaidFixture()
      let upper = try fixture.folder.folder("upper")
      var setup = try fixture.setup("mod@/new/place")
      setup.options = ["writable=" + upper]
      try withMount(setup) { mount in
        try (mount.point / "new/place/mod").write("changed")
        try (mount.point / "new/beside").write("beside")
        #expect(try (mount.point / "new").names() == ["beside", "place"])
        #expect(try (upper / "new/place/mod").readText() == "changed")
        #expect(try (fixture.mod / "mod").readText() == "mod")
        try (mount.point / "new/place/mod").remove()
        try (mount.point / "new/place/both").remove()
        try (mount.point / "new/place").removeDirectory()
        #expect(try (mount.point / "new").names() == ["beside"])
        #expect(try fixture.mod.names() == ["both", "mod"])
      }
    }
  }
}

/// MAIN with `Data`, the folder `mod`, the archive `pack.zip`, and a folder whose name has an `@`.
private final class LaidFixture {
  let folder: TemporaryFolder
  let main: ByteString
  let mod: ByteString
  var pack: ByteString { folder / "pack.zip" }

  init() throws {
    folder = try TemporaryFolder()
    main = try folder.folder("main")
    mod = try folder.folder("mod")
    try (main / "Data/Sub").makeDirectories()
    for (name, text) in [
      ("game", "game"), ("Data/main", "main"), ("Data/both", "main"), ("Data/Sub/deep", "deep"),
    ] {
      try (main / ByteString(name)).write(text)
    }
    for name in ["both", "mod"] as [ByteString] { try (mod / name).write("mod") }
    try (folder.folder("icon@2x") / "two").write("two")
    try writePack([.init("packed", "packed")])
  }

  func writePack(_ entries: [ZipBuilder.Entry]) throws {
    let next = folder / "next.zip"
    try next.write(ZipBuilder(entries).bytes)
    try next.rename(to: pack)
  }

  func setup(_ names: ByteString...) throws -> MountSetup {
    MountSetup(
      main: main, point: try folder.folder("mount"), substitutions: names.map { folder / $0 })
  }

  func run(_ command: ByteString, _ words: [ByteString]) throws -> Outcome {
    try Command([try Binary.underTest(), command] + words, directory: folder.path).run(timeout: 30)
  }
}
