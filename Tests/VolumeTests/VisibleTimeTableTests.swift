import Glibc
import TestSupport
import Testing

@testable import Posix
@testable import Volume

/// The rules and the file of `-o mtime=visible`, without a mount.
@Suite struct VisibleTimeTableTests {
  private static func version(_ file: UInt64, _ modified: Int64, size: UInt64 = 1, changed: UInt32 = 0)
    -> FileVersion
  {
    let identity = FileIdentity(
      device: 1, inode: file, born: TimeSpec(seconds: 1, nanoseconds: UInt32(file & 0xFF)))
    var status = FileStatus(
      regularFile: 0o644, owner: 0, group: 0, size: size, modified: TimeSpec(nanosecondsSinceEpoch: modified))
    (status.identity, status.changed) = (identity, TimeSpec(seconds: 0, nanoseconds: changed))
    return FileVersion(status, isInArchive: false)
  }

  @Test("random looks, switches, edits and moments: a time never goes back, and two versions never share one")
  func random() {
    for seed in Seeds.chosen(TestLength.of(full: 2000, brief: 200)) {
      var random = SplitMix64(seed: seed)
      var table = VisibleTimeTable()
      var (now, shown): (Int64, [UInt64: [(FileVersion, Int64)]]) = (1_000_000_000_000, [:])
      var files = (1...6).map { Self.version(UInt64($0), Int64(random.number(0...2_000)) * 1_000_000_000) }
      for _ in 0..<60 {
        now += Int64(random.number(0...3)) * 1_000_000
        let (key, place) = (UInt64(random.number(1...3)), random.number(0...files.count - 1))
        switch random.number(0...5) {
        case 0: table.mark(key, at: now)
        case 1:
          // As in the file system's clock, whose ticks are longer.
          let time = random.number(0...1) == 0 ? now - now % 4_000_000 : Int64(random.number(0...2_000_000))
          let changed = Self.version(UInt64(place + 1), time, size: UInt64(random.number(1...1000)))
          if changed.state != files[place].state { files[place] = changed }
        default:
          let file = files[place]
          let isKnown = random.number(0...3) == 0
          let since = (isKnown ? table.stat(key, file, now: now) : table.look(key, file, now: now)).since
          if isKnown { continue }
          let time = max(since, file.modified)
          if let last = shown[key]?.last, last.0 != file {
            #expect(time > last.1, "seed \(seed)")
          } else if let last = shown[key]?.last {
            #expect(time >= last.1, "seed \(seed)")
          }
          for (other, at) in shown[key] ?? [] where other != file { #expect(at != time, "seed \(seed)") }
          shown[key, default: []].append((file, time))
        }
      }
    }
  }

  @Test("a time that a program has set is shown, and that of a version which follows is later")
  func set() {
    var table = VisibleTimeTable()
    let (first, second) = (Self.version(1, 500), Self.version(2, 100))
    #expect(table.look(8, first, now: 1000).since == 0)
    #expect(table.look(8, second, now: 2000).since == 2000)
    let changed = Self.version(2, 50)
    _ = table.set(8, changed)
    #expect(table.look(8, changed, now: 3000).since == 0)
    #expect(table.stat(8, changed, now: 3000).since == 0)
    #expect(table.look(8, first, now: 4_000_000_000).since == 4_000_000_000)
  }

  @Test("a copy, a rename and a link keep the time; a rename does not take a name back in time")
  func own() {
    var table = VisibleTimeTable()
    let (old, other) = (Self.version(1, 500), Self.version(2, 100))
    _ = table.look(8, old, now: 1000)
    _ = table.look(8, other, now: 2000)
    let copy = Self.version(3, 100)
    _ = table.copy(of: other, is: copy.shared, at: nil)
    #expect(table.look(8, copy, now: 3000).since == 2000)
    _ = table.move(8, to: 16, isExchange: false, now: 4000)
    #expect(table.look(16, copy, now: 4000).since == 2000)
    #expect(table.look(24, copy, now: 4000).since == 2000, "another name of the file")
    _ = table.look(32, Self.version(4, 9000), now: 5000)
    _ = table.move(16, to: 32, isExchange: false, now: 10_000)
    #expect(table.look(32, copy, now: 20_000).since == 10_000)
  }

  @Test("a content that was changed under the same time and size shows another time, once")
  func rewritten() {
    var table = VisibleTimeTable()
    _ = table.look(8, Self.version(1, 500, changed: 600), now: 1000)
    #expect(table.look(8, Self.version(1, 500, changed: 700), now: 1500).since == 0, "chmod")
    table.mark(8, at: 2000, isContent: true)
    #expect(table.stat(8, Self.version(1, 500, changed: 700), now: 3000).since == 0, "seen before")
    table.mark(8, at: 4000, isContent: true)
    for _ in 0..<2 { #expect(table.stat(8, Self.version(1, 500, changed: 800), now: 5000).since == 4000) }
  }

  @Test("the table is bounded, and keeps first what shows another time than its own")
  func bounds() {
    var table = VisibleTimeTable()
    _ = table.look(1, Self.version(1, 500), now: 1000)
    _ = table.look(1, Self.version(2, 100), now: 2000)
    for key in 2..<UInt64(VisibleTimeTable.mostNames + 100) {
      _ = table.look(key, Self.version(key, 7), now: 9)
    }
    #expect(table.records.count <= VisibleTimeTable.mostNames)
    #expect(table.records[1]?.since == 2000)
  }

  // MARK: - The file

  private static func open(_ folder: TemporaryFolder) throws(VisibleTimeLog.Fault) -> VisibleTimeLog {
    let path = folder.path.bytes
    let opened: Descriptor
    do throws(Errno) { opened = try Descriptor.open(path, [.read, .directory]) } catch {
      throw .failed(error)
    }
    return try VisibleTimeLog(
      Array("times".utf8), in: SharedDescriptor(opened), temporary: Array("new".utf8), isSuccessor: true)
  }

  private static func load(_ folder: TemporaryFolder) throws(VisibleTimeLog.Fault) -> VisibleTimeTable {
    var (table, log) = (VisibleTimeTable(), try open(folder))
    _ = try log.load(into: &table)
    return table
  }

  @Test("wherever the file ends, the records before are read, and the file can be written again")
  func torn() throws {
    let folder = try TemporaryFolder()
    var (table, log) = (VisibleTimeTable(), try Self.open(folder))
    _ = try log.load(into: &table)
    for key in 1...4 as ClosedRange<UInt64> {
      let record = try #require(table.look(key, Self.version(key, 5), now: 10).changed)
      try log.append([record], of: table.records)
    }
    let whole = try (folder / "times").read()
    #expect(whole.count == VisibleTimeRecord.size * 5)
    for end in 0...whole.count {
      try (folder / "times").write(Array(whole[..<end]))
      let records = try Self.load(folder).records
      #expect(records.count == max(0, end / VisibleTimeRecord.size - 1))
      #expect(try Self.load(folder).records == records)
    }
  }

  @Test("a file with flipped bits changes times at most")
  func flipped() throws {
    let folder = try TemporaryFolder()
    var (table, log) = (VisibleTimeTable(), try Self.open(folder))
    for key in 1...3 as ClosedRange<UInt64> {
      let record = try #require(table.look(key, Self.version(key, 5), now: 10).changed)
      try log.append([record], of: table.records)
    }
    let whole = try (folder / "times").read()
    for place in whole.indices {
      var bytes = whole
      bytes[place] ^= 0x40
      try (folder / "times").write(bytes)
      do throws(VisibleTimeLog.Fault) {
        let count = try Self.load(folder).records.count
        #expect(count == (place < VisibleTimeRecord.size ? 3 : 2))
      } catch {
        #expect(error == .foreign && place < VisibleTimeRecord.size)
      }
    }
  }

  @Test("outdated records are dropped, and the file is replaced whole")
  func compaction() throws {
    let folder = try TemporaryFolder()
    var (table, log) = (VisibleTimeTable(), try Self.open(folder))
    for time in 1...20_000 as ClosedRange<Int64> {
      let record = try #require(table.look(1, Self.version(1, time), now: 10).changed)
      try log.append([record], of: table.records)
    }
    #expect(try (folder / "times").status().size < 15_000 * Int64(VisibleTimeRecord.size))
    #expect(try Self.load(folder).records[1]?.shown == 20_000)
    #expect(try (folder / "times").status().size < 3 * Int64(VisibleTimeRecord.size))
  }

  @Test("what is no record of times is not touched")
  func foreign() throws {
    let folder = try TemporaryFolder()
    let path = folder / "times"
    func expect(_ fault: VisibleTimeLog.Fault) {
      do throws(VisibleTimeLog.Fault) {
        _ = try Self.load(folder)
        Issue.record("it was read")
      } catch {
        #expect(error == fault)
      }
    }
    try path.write("root:x:0:0:root:/root:/bin/bash\n")
    expect(.foreign)
    #expect(try path.readText().hasPrefix("root:"))
    try path.remove()
    try path.makeLink(to: "/etc/passwd")
    expect(.foreign)
    try path.remove()
    try path.call("mkfifo") { mkfifo($0, 0o600) }
    expect(.foreign)
    try path.remove()
    try path.write("")
    try path.setMode(0o666)
    expect(.untrusted)
    if geteuid() == 0 {
      try path.setMode(0o600)
      try path.setOwner(65534, group: 0)
      expect(.untrusted)
    }
  }
}
