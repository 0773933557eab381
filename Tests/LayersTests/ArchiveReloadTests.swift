import Glibc
import Posix
import TestSupport
import Testing

@testable import Layers

@Suite struct ArchiveReloadTests {
  private func changes(_ difference: ArchiveDifference?) -> Set<String> {
    guard let difference else { return [] }
    return Set(
      difference.items.map { item in
        let path =
          difference.folders(above: item) { _ in false }.unknown.reversed().map(\.name) + [
            difference.name(of: item)
          ]
        return "\(item.kind) " + path.map { String(decoding: $0, as: UTF8.self) }.joined(separator: "/")
          + (item.isFolder ? "/" : "")
      })
  }

  @Test("unchanged entries keep their identity, changed ones get another, and all differences are reported")
  func difference() throws {
    let fixture = try ArchiveFixture([
      .init("same", "1"), .init("changed", "2"), .init("d/gone", "3"), .init("d/kept", "4", .deflated),
      .init("old/deep/file", "5"), .init("swap", "6"), .init("back/x", "7"), .init("mode", "8"),
    ])
    let (same, changed) = (
      try fixture.attributes("same").identity, try fixture.attributes("changed").identity
    )
    let folder = try fixture.attributes("d").identity
    var mode = ZipBuilder.Entry("mode", "8")
    mode.mode = 0o100600
    try fixture.path.replace(
      ZipBuilder([
        .init("new/a", ""), .init("new/b", ""), .init("d/kept", "4", .deflated), .init("changed", "20"),
        .init("same", "1"), .init("swap/inner", ""), .init("back", ""), mode,
      ]).bytes)
    #expect(fixture.layer.isOutdated)
    let found = changes(fixture.layer.reload())
    #expect(
      found == [
        "created new/", "deleted d/gone", "replaced changed", "deleted old/", "deleted swap", "created swap/",
        "deleted back/", "created back", "attributes mode",
      ])
    #expect(!fixture.layer.isOutdated && fixture.layer.reload() == nil)
    #expect(try fixture.attributes("same").identity == same)
    #expect(try fixture.attributes("changed").identity != changed)
    #expect(try fixture.attributes("d").identity == folder)
    #expect(try fixture.text("changed") == "20")
  }

  @Test("open files keep the old content after a rename, even if it was not decoded before")
  func readers() throws {
    let fixture = try ArchiveFixture([
      .init("stored", "old stored"), .init("packed", "old packed", .deflated),
      .init("same", "same", .deflated),
    ])
    let files = try ["stored", "packed", "same"].map { try fixture.open($0) }
    try fixture.path.replace(
      ZipBuilder([.init("stored", "new"), .init("same", "same", .deflated), .init("packed", "n", .deflated)])
        .bytes)
    _ = fixture.layer.reload()
    #expect(
      try files.map { String(decoding: try $0.readAll(), as: UTF8.self) } == [
        "old stored", "old packed", "same",
      ])
    #expect(try fixture.text("stored") == "new")
    #expect(try fixture.open("same") !== files[2])
  }

  @Test("after an overwrite lost entries are stale and unchanged ones stay readable")
  func overwritten() throws {
    let long = [UInt8](repeating: 9, count: 5000)
    let fixture = try ArchiveFixture([
      .init("lost", "old stored"), .init("read", "old packed", .deflated), .init("same", long, .deflated),
      .init("same2", long),
    ])
    let files = try ["lost", "read", "same", "same2"].map { try fixture.open($0) }
    #expect(try files[1].readAll() == Array("old packed".utf8))
    try fixture.path.write(
      ZipBuilder([
        .init("x", "shift"), .init("same2", long), .init("same", long, .deflated), .init("lost", "?"),
      ])
      .bytes)
    _ = fixture.layer.reload()
    #expect(throws: Errno.staleFileHandle) { try files[0].readAll() }
    #expect(try files[1].readAll() == Array("old packed".utf8), "it was decoded before")
    #expect(try files[2].readAll() == long)
    #expect(try files[3].readAll() == long)
  }

  @Test("while the archive cannot be read, the former index is used and the error reported")
  func halfWritten() throws {
    let fixture = try ArchiveFixture([.init("a", "one"), .init("b", "two", .deflated)])
    let whole = try fixture.path.read()
    try fixture.path.write(Array(whole[..<40]))
    #expect(fixture.layer.reload() == nil)
    #expect(fixture.layer.reloadError == .noArchive)
    #expect(try fixture.paths() == ["a", "b"])
    try fixture.path.remove()
    #expect(fixture.layer.reload() == nil)
    #expect(fixture.layer.reloadError == .unreadable(.noSuchFileOrDirectory))
    #expect(try fixture.paths() == ["a", "b"])
    try fixture.path.write(ZipBuilder([.init("a", "three")]).bytes)
    #expect(fixture.layer.reload() != nil)
    #expect(fixture.layer.reloadError == nil)
    #expect(try fixture.text("a") == "three")
    #expect(try fixture.paths() == ["a"])
  }

  @Test("a stored entry at an unchanged offset is readable while the archive's end is written")
  func appended() throws {
    let fixture = try ArchiveFixture([.init("a", [UInt8](repeating: 3, count: 100_000))])
    let file = try fixture.open("a")
    let whole = try fixture.path.read()
    try fixture.path.write(Array(whole[..<100_040]) + [UInt8](repeating: 0, count: 500))
    #expect(try file.readAll() == [UInt8](repeating: 3, count: 100_000))
  }

  private func firstBytes(of file: LayerFile) throws -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: 65536)
    let count = try bytes.withUnsafeMutableBytes { buffer throws(Errno) in try file.read(into: buffer, at: 0)
    }
    return Array(bytes[..<count])
  }

  @Test(
    "what was read of an entry without being verified is not continued by the next archive",
    arguments: [0, 1])
  func unverified(threads: Int) throws {
    let content = [UInt8]((0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* $0 >> 7) })
    let good: [ZipBuilder.Entry] = [.init("stored", content), .init("packed", content, .deflated)]
    for isDamaged in [true, false] {
      // The same sizes and checksums: only the bytes differ.
      var bytes = ZipBuilder(good).bytes
      if isDamaged { for index in [100, bytes.count / 2 + 1000] { bytes[index] ^= 1 } }
      let fixture = try ArchiveFixture(good, threads: threads)
      try fixture.path.replace(bytes)
      _ = fixture.layer.reload()
      let files = try ["stored", "packed"].map { try fixture.open($0) }
      let stored = try fixture.attributes("stored").identity
      let starts = files.map { try? firstBytes(of: $0) }
      if isDamaged { for file in files { #expect(throws: Errno.ioError) { try file.readAll() } } }
      try fixture.path.replace(ZipBuilder(good).bytes)
      #expect(changes(fixture.layer.reload()).contains("replaced stored"))
      #expect(try fixture.attributes("stored").identity != stored)
      // The packed one may have been verified, or found damaged, before its first bytes were returned.
      for (file, start) in zip(files, starts) where start != nil {
        if isDamaged {
          #expect(throws: Errno.ioError) { try file.readAll() }
        } else {
          #expect(try file.readAll() == content)
        }
      }
      #expect(try fixture.content("stored") == content)
      #expect(try fixture.content("packed") == content)
    }
  }

  @Test("without a watch, the next access to the root reloads the archive")
  func unwatched() throws {
    let fixture = try ArchiveFixture([.init("a", "one")])
    try fixture.path.replace(ZipBuilder([.init("b", "two")]).bytes)
    #expect(try fixture.paths() == ["b"])
  }

  @Test("reads that wait for a truncated archive block no other and end", arguments: [0, 1])
  func truncated(threads: Int) throws {
    let content = [UInt8]((0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* $0 >> 7) })
    let names = (0..<8).map { "big\($0)" }
    let fixture = try ArchiveFixture(
      names.map { .init(ByteString($0), content, .deflated) }, threads: threads)
    let files = try names.map { try fixture.open($0) }
    try fixture.path.write([UInt8](repeating: 0, count: 100))
    let begin = TimeSpec.monotonic
    let failures = Locked<[Errno]>([])
    for file in files {
      file.whenReadable(at: 0, count: 100) { failure in
        if let failure { failures.withLock { $0.append(failure) } }
      }
    }
    // A single decoding thread reaches all of them long before the first deadline.
    usleep(100_000)
    #expect(failures.withLock { $0 }.isEmpty)
    _ = fixture.layer.reload()
    #expect(
      failures.withLock { $0 } == Array(repeating: .staleFileHandle, count: 8),
      "a failed reload fails them at once")
    #expect(throws: Errno.staleFileHandle) { try files[0].readAll() }
    #expect(TimeSpec.monotonic.seconds - begin.seconds <= 1)
  }

  @Test("waiting reads continue with the new archive or fail after a second", arguments: [0, 1])
  func waiting(threads: Int) throws {
    let content = [UInt8]((0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* $0 >> 7) })
    for isRepaired in [true, false] {
      let fixture = try ArchiveFixture([.init("big", content, .deflated)], threads: threads)
      let good = try fixture.path.read()
      let file = try fixture.open("big")
      try fixture.path.write([UInt8](repeating: 0, count: 100))
      let outcome = BlockingQueue<Errno?>()
      file.whenReadable(at: 0, count: 100) { outcome.enqueue($0) }
      if isRepaired {
        try fixture.path.replace(good)
        _ = fixture.layer.reload()
      }
      let failure = try #require(outcome.dequeue())
      #expect(failure == (isRepaired ? nil : .staleFileHandle))
      if isRepaired { #expect(try file.readAll() == content) }
    }
  }
}
