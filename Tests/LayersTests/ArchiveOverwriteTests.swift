import Glibc
import Posix
import TestSupport
import Testing

@testable import Layers

/// Archives that are overwritten in place, where the former content is lost while programs read it.
@Suite struct ArchiveOverwriteTests {
  /// Two versions of an archive whose indices are equal at half of a slow copy: the second's content has another
  /// checksum, but its directory comes last.
  private struct Versions {
    let former: [UInt8]
    let present: [UInt8]
    /// The beginning of the present one, the rest of the former one.
    var half: [UInt8] { Array(present.prefix(present.count / 2) + former.dropFirst(present.count / 2)) }

    private init(_ method: ZipBuilder.Method) {
      former = ZipBuilder([.init("big", Self.content, method)]).bytes
      present = ZipBuilder([.init("big", Self.otherContent, method)]).bytes
    }

    /// More than is decoded ahead of the first read.
    static let content = [UInt8](repeating: 7, count: 6 << 20)
    static let otherContent = [UInt8](repeating: 5, count: 6 << 20)
    private static let stored = Versions(.stored)
    private static let deflated = Versions(.deflated)

    static func of(_ method: ZipBuilder.Method) -> Versions { method == .stored ? stored : deflated }
  }

  private func part(of file: LayerFile, at offset: Int) throws(Errno) -> ArraySlice<UInt8> {
    var bytes = [UInt8](repeating: 0, count: 65536)
    let result = bytes.withUnsafeMutableBytes { buffer -> Result<Int, Errno> in
      do throws(Errno) { return .success(try file.read(into: buffer, at: Int64(offset))) } catch {
        return .failure(error)
      }
    }
    return bytes[..<(try result.get())]
  }

  private func overwrite(_ path: ByteString, _ bytes: [UInt8]) throws {
    try path.withOpen(O_WRONLY) { file in
      _ = bytes.withUnsafeBytes { write(file, $0.baseAddress, $0.count) }
    }
  }

  @Test(
    "an entry that was read as a whole continues with nothing of a copy that pauses halfway",
    arguments: [ZipBuilder.Method.stored, .deflated], [0, 1])
  func verified(method: ZipBuilder.Method, threads: Int) throws {
    let versions = Versions.of(method)
    let fixture = try ArchiveFixture([.init("big", Versions.content, method)], threads: threads)
    let file = try fixture.open("big")
    #expect(try file.readAll() == Versions.content)
    try fixture.evictAll()
    try overwrite(fixture.path, versions.half)
    #expect(fixture.layer.reload() == nil, "the index is the same")
    // The kernel has other pages of this file.
    #expect(throws: Errno.ioError) { try part(of: file, at: 500_000) }
    #expect(throws: Errno.ioError) { try part(of: try fixture.open("big"), at: 5_200_000) }
    try overwrite(fixture.path, versions.present)
    _ = fixture.layer.reload()
    #expect(try fixture.content("big") == Versions.otherContent)
    #expect(throws: Errno.self) { try part(of: file, at: 500_000) }
  }

  @Test(
    "an entry that was read in part continues with nothing of what overwrites it",
    arguments: [ZipBuilder.Method.stored, .deflated], [0, 1])
  func unverified(method: ZipBuilder.Method, threads: Int) throws {
    let versions = Versions.of(method)
    for content in [versions.half, versions.present] {
      for isReloaded in [false, true] {
        let fixture = try ArchiveFixture([.init("big", Versions.content, method)], threads: threads)
        let (file, identity) = (try fixture.open("big"), try fixture.attributes("big").identity)
        #expect(try part(of: file, at: 0) == Versions.content[..<65536])
        try fixture.evictAll()
        try overwrite(fixture.path, content)
        if isReloaded { _ = fixture.layer.reload() }
        let error = #expect(throws: Errno.self) { try part(of: file, at: 5_200_000) }
        #expect(error == .staleFileHandle || (!isReloaded && error == .ioError))
        _ = fixture.layer.reload()
        #expect(try fixture.attributes("big").identity != identity)
      }
    }
  }

  @Test("a damaged entry that was read in part and repaired in place is never mixed with its repair")
  func repaired() throws {
    for method in [ZipBuilder.Method.stored, .deflated] {
      let good = Versions.of(method).former
      var bad = good
      bad[1000] ^= 1
      let fixture = try ArchiveFixture([.init("big", Versions.content, method)])
      try fixture.path.replace(bad)
      _ = fixture.layer.reload()
      let file = try fixture.open("big")
      #expect(try part(of: file, at: 0) != Versions.content[..<65536])
      try fixture.evictAll()
      try overwrite(fixture.path, good)
      #expect(throws: Errno.staleFileHandle) { try part(of: file, at: 5_200_000) }
      _ = fixture.layer.reload()
      #expect(throws: Errno.staleFileHandle) { try part(of: file, at: 5_200_000) }
      #expect(try fixture.content("big") == Versions.content)
    }
  }

  @Test("a very large entry becomes another file, so that its next read need not wait for all of it")
  func large() throws {
    let content = [UInt8](repeating: 4, count: Int(ArchiveContent.largestContinued) + 1)
    let fixture = try ArchiveFixture([.init("big", content), .init("small", "1")])
    let (big, small) = (
      try fixture.attributes("big").identity, try fixture.attributes("small").identity
    )
    #expect(try part(of: fixture.open("big"), at: 0).count == 65536)
    #expect(try fixture.text("small") == "1")
    try fixture.path.replace(try fixture.path.read())
    _ = fixture.layer.reload()
    #expect(try fixture.attributes("big").identity != big)
    #expect(try fixture.attributes("small").identity == small)
  }

  @Test("a small entry is verified before its first byte is returned")
  func small() throws {
    for method in [ZipBuilder.Method.stored, .deflated] {
      var entry = ZipBuilder.Entry("a", [UInt8](repeating: 5, count: 200_000), method)
      entry.hasWrongChecksum = true
      let fixture = try ArchiveFixture([entry], threads: 1)
      #expect(throws: Errno.ioError) { try part(of: try fixture.open("a"), at: 0) }
    }
  }

  @Test("a state of an archive is loaded only when a later write changes its modification time")
  func settled() throws {
    let fixture = try ArchiveFixture([.init("a", "1")])
    for _ in 0..<5 {
      try overwrite(fixture.path, [0x50])
      let source = try ArchiveSource(path: fixture.path.bytes)
      var now = timespec()
      clock_gettime(CLOCK_REALTIME_COARSE, &now)
      let modified = source.attributes.modified
      #expect((Int64(now.tv_sec), now.tv_nsec) > (modified.seconds, Int(modified.nanoseconds)))
    }
  }
}
