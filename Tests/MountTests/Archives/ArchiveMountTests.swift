import FoundationEssentials
import Glibc
import Posix
import TestSupport
import Testing

/// Mounts of zip archives.
extension MountTests.ExclusiveTests {
  @Suite struct ArchiveMountTests {
    private static func folder(_ entries: [ZipBuilder.Entry]) throws -> (TemporaryFolder, MountSetup) {
      let folder = try TemporaryFolder()
      try (folder / "app.ipa").write(ZipBuilder(entries).bytes)
      return (folder, MountSetup(main: folder / "app.ipa", point: try folder.folder("mount")))
    }

    private static let bundle: [ZipBuilder.Entry] = [
      .init("Payload/App.app/Info.plist", "<plist/>", .deflated), .init("Payload/App.app/logo", "shipped"),
      .init("Payload/App.app/fr.lproj/Main.strings", "Bonjour", .deflated), .init("iTunesMetadata", "x"),
    ]

    @Test("a folder in an archive below a substitution folder whose entries appear and vanish")
    func substituted() throws {
      var (folder, setup) = try Self.folder(Self.bundle)
      let over = try folder.folder("over")
      setup.main = folder / "app.ipa!/Payload/App.app"
      setup.substitutions = [over]
      try withMount(setup) { mount in
        #expect(try mount.names() == ["Info.plist", "fr.lproj", "logo"])
        #expect(try (mount.point / "logo").readText() == "shipped")
        try (over / "logo").write("mine")
        try (over / ".wh.Info.plist").write("")
        try (folder.folder("over/fr.lproj") / "Other.strings").write("Salut")
        try mount.barrier()
        #expect(try (mount.point / "logo").readText() == "mine")
        #expect(try mount.names() == ["fr.lproj", "logo"])
        #expect(try (mount.point / "fr.lproj").names() == ["Main.strings", "Other.strings"])
        try (over / "logo").remove()
        try mount.barrier()
        #expect(try (mount.point / "logo").readText() == "shipped")
      }
    }

    @Test("an archive above a folder overrides files and hides entries")
    func aboveFolder() throws {
      let (folder, _) = try Self.folder([
        .init("a", "archive's", .deflated), .init(".wh.b", ""), .init("d/.wh..wh..opq", ""),
        .init("d/x", "1"),
      ])
      let main = try folder.folder("main")
      for name in ["a", "b", "c"] as [ByteString] { try (main / name).write("main's") }
      try (folder.folder("main/d") / "hidden").write("")
      let setup = MountSetup(
        main: main, point: try folder.folder("mount"), substitutions: [folder / "app.ipa"])
      try withMount(setup) { mount in
        let names = try mount.names()
        #expect(names == ["a", "c", "d"])
        #expect(try (mount.point / "a").readText() == "archive's")
        #expect(try (mount.point / "d").names() == ["x"])
      }
    }

    @Test("the origin of an entry, and statfs")
    func origin() throws {
      let (folder, setup) = try Self.folder(Self.bundle)
      try withMount(setup) { mount in
        let logo = mount.point / "Payload/App.app/logo"
        #expect(
          try ByteString(logo.attribute("user.bundlefs.path")) == folder / "app.ipa!/Payload/App.app/logo")
        #expect(try ByteString(logo.attribute("user.bundlefs.layer")) == folder / "app.ipa")
        try expectErrno(.noData) { _ = try logo.attribute("user.other") }
        try Command("df", mount.point.text).check()
        try expectErrno(.readOnlyFileSystem) { try (mount.point / "new").write("") }
      }
    }

    @Test("after a replacement, unchanged entries keep their inode and open readers their content")
    func replaced() throws {
      let old: [ZipBuilder.Entry] = [
        .init("same", "same", .deflated), .init("changed", "old content", .deflated), .init("gone/x", ""),
      ]
      let (folder, setup) = try Self.folder(old)
      try withMount(setup) { mount in
        let (same, changed) = (mount.point / "same", mount.point / "changed")
        let (sameInode, changedInode) = (try same.status().inode, try changed.status().inode)
        #expect(try same.readText() == "same")
        try changed.withOpen(O_RDONLY) { reader in
          var buffer = [UInt8](repeating: 0, count: 3)
          #expect(try ByteString.readPart(&buffer, of: reader, at: 0) == 3)
          try (folder / "app.ipa").replace(
            ZipBuilder([
              .init("changed", "new", .deflated), .init("same", "same", .deflated), .init("n", "1"),
            ])
            .bytes)
          try mount.barrier()
          #expect(try changed.readText() == "new")
          #expect(try mount.names() == ["changed", "n", "same"])
          #expect(try same.status().inode == sameInode)
          #expect(try changed.status().inode != changedInode)
          #expect(try ByteString.readAll(reader) == Array("old content".utf8))
        }
      }
    }

    @Test("a replacement appears without a barrier, by rename and in place", arguments: [false, true])
    func withoutBarrier(inPlace: Bool) throws {
      let (folder, setup) = try Self.folder([.init("a", "one")])
      try withMount(setup) { mount in
        #expect(try (mount.point / "a").readText() == "one")
        let content = ZipBuilder([.init("a", "two!")]).bytes
        try inPlace ? (folder / "app.ipa").write(content) : (folder / "app.ipa").replace(content)
        #expect(try eventually(within: 5) { try (mount.point / "a").readText() == "two!" })
      }
    }

    @Test(
      "a truncated, removed or invalid archive leaves the last good one in use, and the status reports it")
    func lastGood() throws {
      let (folder, setup) = try Self.folder(Self.bundle)
      let archive = folder / "app.ipa"
      try withMount(setup) { mount in
        func expectOld(_ message: String) throws {
          try mount.barrier()
          #expect(try (mount.point / "Payload/App.app/fr.lproj/Main.strings").readText() == "Bonjour")
          #expect(try (mount.point / "Payload/App.app").names() == ["Info.plist", "fr.lproj", "logo"])
          let status = try mount.command("status").outputText
          #expect(status.contains(message), "\(status)")
        }
        _ = try (mount.point / "Payload/App.app/fr.lproj/Main.strings").readText()
        let whole = try archive.read()
        try archive.write(Array(whole[..<100]))
        try expectOld("not a zip archive, or its end is missing")
        try archive.remove()
        try expectOld("No such file or directory")
        try archive.write("text")
        try expectOld("not a zip archive")
        try archive.replace(ZipBuilder([.init("only", "")]).bytes)
        try mount.barrier()
        #expect(try mount.names() == ["only"])
        let status = try mount.command("status").outputText
        #expect(!status.contains("last readable content shown"), "\(status)")
      }
    }

    @Test("damaged, encrypted and skipped entries are reported and do not affect others")
    func unreadableEntries() throws {
      var damaged = ZipBuilder.Entry("damaged", "content", .deflated)
      damaged.hasWrongChecksum = true
      var secret = ZipBuilder.Entry("secret", "content", .deflated)
      secret.flags = 1
      var bomb = ZipBuilder.Entry("bomb", [UInt8](repeating: 0, count: 100_000), .deflated)
      bomb.sizeError = -99_000
      let (folder, setup) = try Self.folder([
        damaged, secret, bomb, .init("../up", ""), .init("fine", "fine", .deflated), .init("fine2", "fine"),
      ])
      try withMount(setup) { mount in
        try expectErrno(.ioError) { _ = try (mount.point / "damaged").read() }
        try expectErrno(.permissionDenied) { _ = try (mount.point / "secret").read() }
        try expectErrno(.ioError) { _ = try (mount.point / "bomb").read() }
        #expect(try (mount.point / "fine").readText() == "fine")
        #expect(try (mount.point / "fine2").readText() == "fine")
        #expect(try mount.command("status").outputText.contains("skipped 1 ('..' in the path): ../up"))
        let json = try mount.command("status", "--json").outputText
        #expect(json.contains(#""reason":"'..' in the path","count":1,"names":["../up"]"#), "\(json)")
      }
      #expect((folder / "app.ipa").exists)
    }

    @Test("invalid layers are refused with a clear message, and nothing is mounted")
    func refused() throws {
      let (folder, setup) = try Self.folder(Self.bundle)
      try (folder / "text").write("no archive")
      let cases: [(ByteString, String)] = [
        ("text", "not a zip archive"), ("app.ipa!/Nothing", "the archive has no folder 'Nothing'"),
        (
          "app.ipa!/iTunesMetadata",
          "is a file in the archive, not a folder; if it is an archive itself, add '!/': '!/iTunesMetadata!/'"
        ),
        ("missing.zip!/a", "no such directory or archive"),
      ]
      for (name, words) in cases {
        var setup = setup
        setup.main = folder / name
        let outcome = try setup.command(foreground: false).run()
        #expect(outcome.status == 1)
        #expect(outcome.errorText.contains(words), "\(outcome.errorText)")
        #expect(try MountTable.bundlefs(at: setup.point) == nil)
      }
    }

    @Test("with cache=none or a timeout a replaced archive is reread", arguments: ["none", "0.1"])
    func uncached(mode: String) throws {
      var (folder, setup) = try Self.folder([.init("a", "one")])
      setup.options = [ByteString("cache=\(mode)")]
      try withMount(setup) { mount in
        #expect(try (mount.point / "a").readText() == "one")
        try (folder / "app.ipa").replace(ZipBuilder([.init("a", "two!"), .init("b", "")]).bytes)
        let isReread = try eventually(within: 5) { try mount.names() == ["a", "b"] }
        #expect(isReread)
        #expect(try eventually(within: 5) { try (mount.point / "a").readText() == "two!" })
      }
    }

    @Test(
      "an entry damaged far from its start is readable once the archive is repaired",
      arguments: [ZipBuilder.Method.stored, .deflated])
    func repaired(method: ZipBuilder.Method) throws {
      let content = [UInt8]((0..<6 << 20).map { UInt8(truncatingIfNeeded: $0 &* $0 >> 7) })
      let good = ZipBuilder([.init("big", content, method), .init("small", "1")]).bytes
      var damaged = good
      let offset = method == .stored ? 1 << 20 : good.count * 3 / 4
      for index in offset..<offset + 64 { damaged[index] ^= 0xFF }
      let (folder, setup) = try Self.folder([])
      try (folder / "app.ipa").write(damaged)
      try withMount(setup) { mount in
        let big = mount.point / "big"
        let inode = try big.status().inode
        #expect(throws: (any Error).self) { try big.read() }
        try (folder / "app.ipa").replace(good)
        try mount.barrier()
        #expect(try big.read() == content)
        // Readers of the damaged one must not go on with it.
        #expect(try big.status().inode != inode)
        // Nor are the two mixed without a barrier.
        for round in 0..<10 {
          for bytes in [damaged, good] {
            try (folder / "app.ipa").replace(bytes)
            if let read = try? big.read(), read != content { Issue.record("mixed in round \(round)") }
          }
        }
      }
    }

    /// The number of deleted archive files that a process has open.
    private static func deletedFiles(of process: pid_t) throws -> Int {
      let script = "ls -l /proc/$1/fd | grep -c 'app.ipa.*(deleted)' || :"
      let text = try Command.shell(script, ByteString("\(process)")).check().outputText
      return try #require(Int(text.split(separator: "\n").last ?? ""))
    }

    @Test("replaced archives do not stay open")
    func replacedOften() throws {
      func archive(_ round: Int) -> [UInt8] {
        let content = [UInt8](repeating: UInt8(round), count: 2_000_000)
        return ZipBuilder([
          .init("big", content, .deflated), .init("small", "\(round)", .deflated),
          .init("same", [UInt8](repeating: 7, count: 2_000_000), .deflated),
        ]).bytes
      }
      let (folder, setup) = try Self.folder([])
      try (folder / "app.ipa").write(archive(0))
      try withMount(setup) { mount in
        let daemon = mount.worker
        for round in 1...20 {
          _ = try (mount.point / "same").read()
          #expect(try (mount.point / "big").read()[1_999_999] == UInt8(round - 1))
          #expect(try (mount.point / "small").readText() == "\(round - 1)")
          try (folder / "app.ipa").replace(archive(round))
          try mount.barrier()
        }
        #expect(try (mount.point / "small").readText() == "20")
        _ = try (mount.point / "big").read()
        let isClosed = try eventually(within: 2) { try Self.deletedFiles(of: daemon) <= 2 }
        #expect(isClosed)
      }
    }

    @Test("an open entry is read to its end after a death and a replacement", arguments: [false, true])
    func replacedAfterDeath(isStored: Bool) throws {
      func archive(_ byte: UInt8) -> [UInt8] {
        let content = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 >> 8) ^ byte }
        return ZipBuilder([.init("entry", content, isStored ? .stored : .deflated)]).bytes
      }
      let (folder, setup) = try Self.folder([])
      try (folder / "app.ipa").write(archive(1))
      try withMount(setup) { mount in
        let content = try (mount.point / "entry").read()
        let file = try Descriptor.open((mount.point / "entry").bytes, [.read])
        let former = mount.worker
        kill(former, SIGKILL)
        #expect(eventually(within: 20) { mount.worker != former })
        try mount.barrier()
        try (folder / "app.ipa").replace(archive(2))
        try mount.barrier()
        try ByteString("/proc/sys/vm/drop_caches").write("3")
        #expect(try file.readAll() == content)
        #expect(try (mount.point / "entry").read() != content)
      }
    }

    @Test("unpacked content is dropped by invalidate and SIGHUP", arguments: [false, true])
    func dropped(bySignal: Bool) throws {
      let (folder, setup) = try Self.folder([
        .init("a", [UInt8](repeating: 1, count: 100_000), .deflated)
      ])
      try withMount(setup) { mount in
        let content = try (mount.point / "a").read()
        #expect(try !mount.command("status", "--json").outputText.contains(#""bytes":0,"entries":0"#))
        if bySignal {
          kill(mount.worker, SIGHUP)
        } else {
          try mount.command("invalidate")
        }
        let isEmpty = try eventually(within: 5) {
          try mount.command("status", "--json").outputText.contains(#""bytes":0,"entries":0"#)
        }
        #expect(isEmpty)
        #expect(try (mount.point / "a").read() == content)
      }
      withExtendedLifetime(folder) {}
    }

    @Test("concurrent readers of large entries with a small cache")
    func manyReaders() throws {
      let contents: [[UInt8]] = (0..<6).map { [UInt8](repeating: UInt8($0), count: 2_000_000) }
      var (folder, setup) = try Self.folder(
        contents.enumerated().map { .init(ByteString("\($0)"), $1, .deflated) })
      setup.options = ["cache_size=4M"]
      try withMount(setup) { mount in
        let script = "for i in 0 1 2 3 4 5; do cksum < $1/$i > $2.$i & cksum < $1/$i > $2.$i.b & done; wait"
        try Command.shell(script, mount.point, folder / "sum").check()
        for (index, content) in contents.enumerated() {
          try (folder / "plain").write(content)
          let expected = try Command.shell("cksum < $1", folder / "plain").check().outputText
          #expect(try (folder / ByteString("sum.\(index)")).readText() == expected)
          #expect(try (folder / ByteString("sum.\(index).b")).readText() == expected)
        }
        let status = try mount.command("status", "--json").outputText
        #expect(status.contains(#""contents":{"budget":4194304,"#), "\(status)")
      }
    }
  }
}
