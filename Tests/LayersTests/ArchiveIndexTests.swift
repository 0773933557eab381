import Glibc
import Posix
import TestSupport
import Testing

@testable import Layers

@Suite struct ArchiveIndexTests {
  @Test("files, explicit and implied folders, and the empty archive")
  func tree() throws {
    var folder = ZipBuilder.Entry("explicit/")
    folder.mode = 0o040700
    let fixture = try ArchiveFixture([
      folder, .init("explicit/file", "a"), .init("made/up/file", "bc", .deflated), .init("./top//x/./y", "d"),
    ])
    #expect(
      try fixture.paths() == [
        "explicit/", "explicit/file", "made/", "made/up/", "made/up/file", "top/", "top/x/", "top/x/y",
      ])
    #expect(try fixture.attributes("explicit").mode == 0o040700)
    #expect(try fixture.attributes("made/up").mode == 0o040755)
    #expect(try fixture.text("made/up/file") == "bc")
    #expect(try fixture.text("top/x/y") == "d")
    #expect(try ArchiveFixture([]).paths() == [])
  }

  @Test("Unix modes without set-user-ID bits and devices, and DOS attributes")
  func modes() throws {
    func entry(_ name: ByteString, _ mode: UInt32, _ content: String = "target") -> ZipBuilder.Entry {
      var entry = ZipBuilder.Entry(name, content)
      entry.mode = mode
      return entry
    }
    let fixture = try ArchiveFixture([
      entry("plain", 0o100640), entry("suid", 0o104755), entry("link", 0o120777), entry("device", 0o060600),
      entry("long link", 0o120777, String(repeating: "x", count: 4096)), entry("dos", 0),
      entry("closed/", 0o040000, ""),
    ])
    #expect(try fixture.attributes("plain").mode == 0o100640)
    #expect(try fixture.attributes("closed").mode == 0o040000)
    #expect(try fixture.attributes("suid").mode == 0o100755)
    #expect(try fixture.attributes("link").mode == 0o120777)
    #expect(try fixture.open("link").linkTarget() == Array("target".utf8))
    #expect(try fixture.attributes("device").mode == 0o100600)
    #expect(try fixture.attributes("long link").isRegular)
    #expect(try fixture.attributes("dos").mode == 0o100644)
  }

  @Test("DOS times are local, also on days on which the clocks change")
  func localTimes() async {
    await #expect(processExitsWith: .success) {
      for zone in ["UTC", "Europe/Berlin", "Australia/Lord_Howe", "America/St_Johns", "Pacific/Apia"] {
        setenv("TZ", zone, 1)
        var (clock, random) = (DOSTime(), SplitMix64(seed: 1))
        for _ in 0..<20_000 {
          let (date, time) = (
            UInt16(truncatingIfNeeded: random.next()), UInt16(truncatingIfNeeded: random.next())
          )
          var parts = tm()
          (parts.tm_year, parts.tm_mon) = (CInt(date >> 9) + 80, CInt(date >> 5 & 0xF) - 1)
          (parts.tm_mday, parts.tm_isdst) = (CInt(date & 0x1F), -1)
          (parts.tm_hour, parts.tm_min, parts.tm_sec) = (CInt(time >> 11), CInt(time >> 5 & 0x3F), 0)
          let expected = Int64(mktime(&parts)) + Int64(time & 0x1F) * 2
          let found = clock.nanoseconds(date: date, time: time) / 1_000_000_000
          // mktime(3) takes either of two times that the clocks show twice.
          precondition(found == expected || Self.timeOfDay(found) == Self.timeOfDay(expected))
        }
      }
    }
  }

  private static func timeOfDay(_ seconds: Int64) -> [CInt] {
    var (time, parts) = (time_t(seconds), tm())
    localtime_r(&time, &parts)
    return [parts.tm_hour, parts.tm_min, parts.tm_sec]
  }

  @Test("an entry takes 56 bytes beside its name and its place in the hash index")
  func nodeSize() { #expect(MemoryLayout<ArchiveNode>.stride == 56) }

  @Test("mtime from Info-ZIP's field, NTFS's or the local DOS time, in this order")
  func times() throws {
    let number = ZipBuilder.number
    let unix = number(0x5455, 2) + number(5, 2) + [1] + number(1_234_567_891, 4)
    let ticks = 132_000_000_012_345_678
    let windows =
      number(0x000A, 2) + number(32, 2) + number(0, 4) + number(1, 2) + number(24, 2) + number(ticks, 8)
      + number(0, 16)
    func entry(_ name: ByteString, _ extra: [UInt8]) -> ZipBuilder.Entry {
      var entry = ZipBuilder.Entry(name, "")
      entry.extra = extra
      return entry
    }
    let fixture = try ArchiveFixture([
      entry("both", windows + unix), entry("windows", windows), entry("dos", []),
      entry("fraction", windows + number(0x5455, 2) + number(5, 2) + [1] + number(1_555_526_401, 4)),
      entry("broken", number(0x5455, 2) + number(500, 2)), entry("folder/new", unix),
    ])
    #expect(try fixture.attributes("both").modified == TimeSpec(seconds: 1_234_567_891, nanoseconds: 0))
    #expect(
      try fixture.attributes("fraction").modified
        == TimeSpec(seconds: 1_555_526_401, nanoseconds: 234_567_800))
    let sinceEpoch = ticks - 116_444_736_000_000_000
    #expect(
      try fixture.attributes("windows").modified
        == TimeSpec(
          seconds: Int64(sinceEpoch / 10_000_000), nanoseconds: UInt32(sinceEpoch % 10_000_000 * 100)))
    var parts = tm()
    (parts.tm_year, parts.tm_mon, parts.tm_mday, parts.tm_isdst) = (120, 1, 3, -1)
    (parts.tm_hour, parts.tm_min, parts.tm_sec) = (4, 5, 6)
    let local = TimeSpec(seconds: Int64(mktime(&parts)), nanoseconds: 0)
    #expect(try fixture.attributes("dos").modified == local)
    #expect(try fixture.attributes("broken").modified == local)
    #expect(try fixture.attributes("folder").modified.seconds == 1_234_567_891, "as its latest entry")
  }

  @Test("backslashes in names from Windows are slashes")
  func backslashes() throws {
    func entry(_ name: ByteString, _ text: String = "", mode: UInt32 = 0) -> ZipBuilder.Entry {
      var entry = ZipBuilder.Entry(name, text)
      entry.mode = mode
      return entry
    }
    let fixture = try ArchiveFixture([
      entry("Textures\\UI\\Button.dds", "button"), entry("Textures\\Empty\\"), entry("mixed/a\\b"),
      entry("Unix\\name", mode: 0o100644), entry("..\\outside"), entry("\\absolute"), entry("plain"),
    ])
    #expect(
      Set(try fixture.paths()) == [
        "Textures/", "Textures/UI/", "Textures/UI/Button.dds", "Textures/Empty/", "mixed/", "mixed/a/",
        "mixed/a/b", "Unix\\name", "plain", "absolute",
      ])
    #expect(try fixture.text("Textures/UI/Button.dds") == "button")
    #expect(try fixture.attributes("Textures/Empty").kind == .directory)
    let statistics = fixture.layer.statistics
    #expect(statistics.backslashed == 5)
    #expect(Set(statistics.skipped.map(\.reason)) == [.parent])
    #expect(statistics.skipped.flatMap(\.names).contains(Array("..\\outside".utf8)))
  }

  @Test("the second byte of a Shift JIS character is no backslash")
  func shiftJIS() throws {
    var entry = ZipBuilder.Entry(ByteString([0x83, 0x5C]), "so")
    entry.mode = 0
    let fixture = try ArchiveFixture([entry], encoding: "shift_jis")
    #expect(try fixture.paths() == ["ソ"])
    #expect(fixture.layer.statistics.backslashed == 0)
  }

  @Test("a folder that is all there is in an archive")
  func wrapper() throws {
    func wrapped(_ names: ByteString..., inside: [ByteString] = []) throws -> String? {
      let fixture = try ArchiveFixture(names.map { .init($0, "") }, inside: inside)
      guard let wrapped = fixture.layer.wrappedPath else { return nil }
      let path = String(decoding: wrapped.path.dropFirst(fixture.path.bytes.count), as: UTF8.self)
      return String(decoding: wrapped.folder, as: UTF8.self) + " " + path
    }
    #expect(try wrapped("Mod/", "Mod/a", "Mod/b/c") == "Mod !/Mod")
    #expect(try wrapped("out/Mod/a", inside: ["out"]) == "Mod !/out/Mod")
    #expect(try wrapped("Mod/a", "readme") == nil)
    #expect(try wrapped("a/x", "b/x") == nil)
    #expect(try wrapped("file") == nil)
    #expect(try wrapped() == nil)
  }

  @Test("names in UTF-8, flagged or not, in code page 437, and in Info-ZIP's field")
  func encodings() throws {
    let utf8 = ByteString("né")
    var flagged = ZipBuilder.Entry(utf8 + "1", "")
    flagged.flags = 1 << 11
    let dos = ByteString([0x82, 0x9B, 0xFF])
    var fielded = ZipBuilder.Entry(ByteString([0x80, 0x81]), "")
    let name = Array("日本".utf8)
    fielded.extra =
      ZipBuilder.number(0x7075, 2) + ZipBuilder.number(5 + name.count, 2) + [1]
      + ZipBuilder.number(Int(ZipBuilder.checksum([0x80, 0x81])), 4) + name
    var replaced = ZipBuilder.Entry("_15.txt", "")
    let euro = Array("€15.txt".utf8)
    replaced.extra =
      ZipBuilder.number(0x7075, 2) + ZipBuilder.number(5 + euro.count, 2) + [1]
      + ZipBuilder.number(Int(ZipBuilder.checksum(replaced.name.bytes)), 4) + euro
    var outdated = ZipBuilder.Entry(ByteString([0x81, 0x82]), "")
    outdated.extra = fielded.extra
    let fixture = try ArchiveFixture([
      flagged, .init(utf8 + "2", ""), .init(dos, ""), fielded, outdated, replaced,
      .init("back\\slash", ""),
    ])
    #expect(
      Set(try fixture.paths()) == ["né1", "né2", "é¢\u{A0}", "日本", "üé", "€15.txt", "back\\slash"])
  }

  @Test("unsafe names are skipped and counted")
  func skipped() throws {
    let fixture = try ArchiveFixture([
      .init("good", "1"), .init("/absolute", ""), .init("../up", ""), .init("a/../b", ""),
      .init(ByteString([0x61, 0, 0x62]), ""), .init("", ""), .init(".", ""),
      .init(ByteString(String(repeating: "n", count: 256)), ""),
      .init(ByteString(String(repeating: "n/", count: 2100)), ""), .init("twice", "old"),
      .init("twice", "new!"), .init("file", ""), .init("file/below", ""), .init("dir/below", ""),
      .init("dir", ""), .init("..good", ""), .init("folder/", ""), .init("folder/", ""),
    ])
    #expect(
      try fixture.paths() == ["..good", "absolute", "dir/", "dir/below", "file", "folder/", "good", "twice"])
    #expect(try fixture.text("twice") == "new!")
    #expect(
      fixture.skipped == [
        .parent: 2, .null: 1, .empty: 2, .tooLong: 2, .repeated: 2, .collision: 2,
      ])
    #expect(
      fixture.layer.statistics.skipped.first { $0.reason == .parent }?.names
        == [Array("../up".utf8), Array("a/../b".utf8)])
  }

  @Test("a folder in an archive can be a layer; a file or a missing path cannot")
  func inside() throws {
    let entries: [ZipBuilder.Entry] = [
      .init("Payload/", ""), .init("Payload/App.app/", ""), .init("Payload/App.app/a", "1"),
      .init("Payload/App.app/b/c", "2"), .init("Payload/other", ""), .init("elsewhere", ""),
    ]
    let fixture = try ArchiveFixture(entries, inside: ["Payload", "App.app"])
    #expect(try fixture.paths() == ["a", "b/", "b/c"])
    #expect(ByteString(fixture.layer.path) == fixture.path + "!/Payload/App.app")
    #expect(throws: ArchiveError.noFolder(Array("Payload/Nothing".utf8))) {
      try ArchiveFixture(entries, inside: ["Payload", "Nothing"])
    }
    #expect(throws: ArchiveError.fileForFolder(Array("Payload/other".utf8))) {
      try ArchiveFixture(entries, inside: ["Payload", "other"])
    }
  }

  @Test("names in the encoding that the user gave, unless they are flagged as UTF-8 or not valid in it")
  func givenEncoding() throws {
    let entries = [
      ZipBuilder.Entry(ByteString([0x8F, 0xE0, 0xA8, 0xA2, 0xA5, 0xE2])), .init("ascii"),
      .init(ByteString([0x82, 0xA0, 0x5C])),
    ]
    #expect(
      try ArchiveFixture(entries, encoding: "cp866").paths() == ["ascii", "В\u{430}\\", "Привет"].sorted())
    #expect(try ArchiveFixture(entries, encoding: "cp932").paths().contains("あ\\"))
    var flagged = ZipBuilder.Entry("\u{E4}")
    flagged.flags = 1 << 11
    #expect(try ArchiveFixture([flagged], encoding: "cp866").paths() == ["\u{E4}"])
    #expect(
      try ArchiveFixture([.init(ByteString([0x80, 0xFF]))], encoding: "shift_jis").paths() == ["Ç\u{A0}"])
    #expect(NameEncoding("no such encoding") == nil)
  }

  @Test("an archive between the program that extracts it and other bytes is found as unzip finds it")
  func enclosed() throws {
    let entries = [ZipBuilder.Entry("a", "1"), .init("b", [UInt8](repeating: 5, count: 3000), .deflated)]
    for (prefix, trailing) in [(0, 66_000), (1000, 66_000), (1000, 1)] {
      let archive =
        [UInt8](repeating: 0x7F, count: prefix) + ZipBuilder(entries).bytes
        + [UInt8](repeating: 0, count: trailing)
      #expect(try ArchiveFixture(archive: archive).text("a") == "1", "\(prefix), \(trailing)")
    }
  }

  @Test("bytes before the archive, a comment that contains an end record, zip64")
  func framing() throws {
    let entries: [ZipBuilder.Entry] = [.init("a", "first"), .init("b", "second", .deflated)]
    let changes: [(inout ZipBuilder) -> Void] = [
      { $0.prefix = Array("#!/bin/sh\nexec unzip\n".utf8) }, { $0.comment = ZipBuilder([]).bytes + [1] },
      { $0.isWide = true },
      {
        $0.isWide = true
        $0.disk = 0xFFFF
      },
      {
        $0.isWide = true
        $0.prefix = [UInt8](repeating: 7, count: 1000)
        $0.comment = [UInt8](repeating: 0x50, count: 65535)
      },
    ]
    for change in changes {
      let fixture = try ArchiveFixture(entries, change)
      #expect(try fixture.paths() == ["a", "b"])
      #expect(try fixture.text("a") == "first")
      #expect(try fixture.text("b") == "second")
    }
    let parts: [(inout ZipBuilder) -> Void] = [
      { $0.disk = 1 },
      {
        ($0.isWide, $0.disk, $0.wideDisk) = (true, 0xFFFF, 1)
      },
    ]
    for part in parts {
      #expect(throws: ArchiveError.part) { try ArchiveFixture(entries, part) }
    }
  }

  @Test("other files and damaged archives have different errors")
  func faults() throws {
    let folder = try TemporaryFolder()
    let path = folder / "file"
    func fault(_ content: [UInt8]) throws -> ArchiveError? {
      try path.write(content)
      do throws(ArchiveError) {
        _ = try ArchiveLayer(archivePath: path.bytes, index: 0, cache: ContentCache())
        return nil
      } catch { return error }
    }
    let good = ZipBuilder([.init("a", "1"), .init("b", "2")]).bytes
    #expect(try fault(good) == nil)
    #expect(try fault([]) == .noArchive)
    #expect(try fault(Array("hello".utf8)) == .noArchive)
    for count in 0..<good.count { #expect(try fault(Array(good[..<count])) != nil, "\(count) bytes") }
    var damaged = good
    let table = try #require(damaged.indices.first { Array(damaged[$0...].prefix(4)) == [0x50, 0x4B, 1, 2] })
    damaged[table] = 0
    guard case .damaged = try fault(damaged) else {
      Issue.record("a damaged central directory is not reported")
      return
    }
  }

  @Test("a signed central directory, even if the signature crosses the read buffer's end")
  func signed() throws {
    func count(entries: Int, signature count: Int) throws -> Int {
      // 100 bytes a record.
      let name = String(repeating: "n", count: 48)
      let fixture = try ArchiveFixture((0..<entries).map { .init(ByteString(name + "\(100_000 + $0)"), "") })
      {
        $0.signature = ZipBuilder.number(0x0505_4B50, 4) + ZipBuilder.number(count, 2)
        $0.signature += [UInt8](repeating: 7, count: count)
      }
      return try fixture.paths().count
    }
    #expect(try count(entries: 3, signature: 10) == 3)
    #expect(try count(entries: 3, signature: 1000) == 3)
    #expect(try count(entries: 10485, signature: 200) == 10485)
    #expect(throws: ArchiveError.self) { try count(entries: 3, signature: 3 << 20) }
  }

  @Test("the archive's root can have an entry")
  func root() throws {
    var root = ZipBuilder.Entry("./")
    root.mode = 0o040710
    let fixture = try ArchiveFixture([root, .init("./file", "1")])
    #expect(try fixture.paths() == ["file"])
    #expect(try fixture.stack.directory(at: []).attributes().mode == 0o040710)
    #expect(fixture.skipped == [:])
  }

  @Test("a truncated archive is not mistaken for one that it contains")
  func nested() throws {
    let inner = ZipBuilder([.init("inner", "1")]).bytes
    let outer = ZipBuilder([
      .init("inner.zip", inner), .init("after", [UInt8](repeating: 7, count: 3000)),
    ]).bytes
    let folder = try TemporaryFolder()
    let path = folder / "outer.zip"
    try path.write(Array(outer.prefix(inner.count + 1000)))
    #expect(throws: ArchiveError.noArchive) {
      try ArchiveLayer(archivePath: path.bytes, index: 0, cache: ContentCache())
    }
    // Bytes after an archive are accepted if it begins with the file.
    try path.write(inner + [UInt8](repeating: 7, count: 1000))
    _ = try ArchiveLayer(archivePath: path.bytes, index: 0, cache: ContentCache())
  }

  @Test("a false number of entries allocates no memory")
  func declaredCount() throws {
    let folder = try TemporaryFolder()
    let path = folder / "huge.zip"
    var end: [UInt8] =
      [0x50, 0x4B, 6, 6] + ZipBuilder.number(44, 8) + [45, 0, 45, 0] + ZipBuilder.number(0, 8)
    // It declares 90 million entries in nearly 4 GiB, all of them a hole.
    let size = 4_200_000_000
    end += ZipBuilder.number(90_000_000, 8) + ZipBuilder.number(90_000_000, 8) + ZipBuilder.number(size, 8)
    end += ZipBuilder.number(0, 8)
    end +=
      [0x50, 0x4B, 6, 7] + ZipBuilder.number(0, 4) + ZipBuilder.number(size, 8) + ZipBuilder.number(1, 4)
    end += [0x50, 0x4B, 5, 6] + ZipBuilder.number(0, 4) + [UInt8](repeating: 0xFF, count: 12) + [0, 0]
    try path.write([])
    try path.setSize(size)
    try path.overwrite(end, at: size)
    do throws(ArchiveError) {
      _ = try ArchiveLayer(archivePath: path.bytes, index: 0, cache: ContentCache())
      Issue.record("it was accepted as an archive")
    } catch {
      if case .damaged = error { return }
      Issue.record("\(error)")
    }
  }

  @Test("paths that imply too many folders are skipped and counted")
  func deepPaths() throws {
    // Paths of nearly 4,095 bytes, as deep as possible, each of another letter.
    let entries = (UInt8(ascii: "A")...UInt8(ascii: "z")).map { letter in
      ZipBuilder.Entry(ByteString(Array(repeatElement([letter, 0x2F], count: 2000).joined()) + [0x66]), "x")
    }
    let fixture = try ArchiveFixture(entries)
    let skipped = fixture.layer.statistics.skipped.first { $0.reason == .tooDeep }
    #expect((skipped?.count ?? 0) > 15 && (skipped?.count ?? 0) < 40)
    #expect(try fixture.text(String(repeating: "A/", count: 2000) + "f") == "x")
  }
}
