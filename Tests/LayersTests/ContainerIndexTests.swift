import Foundation
import Glibc
import Posix
import TestSupport
import Testing

@testable import Layers

/// Tar and 7z archives, without a mount.
@Suite struct ContainerIndexTests {
  private static let formats = ["tar", "tar.gz", "tar.bz2", "tar.xz", "tar.zst", "7z"]

  /// A random archive by the script of the tests with mounts.
  private func archive(_ format: String, seed: Int) throws -> [UInt8] {
    let folder = try TemporaryFolder()
    let script = ByteString(#filePath).parent.parent / "MountTests/Archives/container_model.py"
    try Command(["python3", script, "make", ByteString("\(seed)"), ByteString(format), folder / "archive"])
      .check()
    return try (folder / "archive").read()
  }

  /// An archive by Python's tarfile, whose files have numbers for names.
  private func tar(_ sizes: [Int], mode: String = "w:gz") throws -> [UInt8] {
    let folder = try TemporaryFolder()
    let script = """
      import io, sys, tarfile
      with tarfile.open(sys.argv[1], sys.argv[2]) as archive:
          for number, size in enumerate(map(int, sys.argv[3:])):
              info = tarfile.TarInfo("%03d" % number)
              info.size = size
              archive.addfile(info, io.BytesIO(bytes([number % 251]) * size))
      """
    let arguments = [folder / "archive", ByteString(mode)] + sizes.map { ByteString("\($0)") }
    try Command(["python3", "-c", ByteString(script)] + arguments).check()
    return try (folder / "archive").read()
  }

  @Test(
    "damage of any kind ends in an error, not in a crash or a hang", .timeLimit(.minutes(5)),
    arguments: formats)
  func damage(format: String) throws {
    let whole = try archive(format, seed: 3)
    var random = SplitMix64(seed: 1)
    for step in 0..<40 {
      var bytes = whole
      if step % 4 == 0 { bytes.removeLast(Int.random(in: 1...bytes.count, using: &random)) }
      for _ in 0..<Int.random(in: 0..<4, using: &random) where !bytes.isEmpty {
        // Headers are at the beginning and, of 7z, at the end.
        let offset = Int.random(in: 0..<bytes.count, using: &random)
        bytes[random.next() % 2 == 0 ? offset % min(bytes.count, 1024) : offset] = UInt8(random.next() & 0xFF)
      }
      guard let fixture = try? ArchiveFixture(archive: bytes, budget: 1 << 20) else { continue }
      // A name that is not UTF-8 any more cannot be asked for by its text.
      for path in try fixture.paths() where !path.hasSuffix("/") && !path.contains("\u{FFFD}") {
        do { _ = try fixture.content(path) } catch let error as Errno {
          #expect([.ioError, .staleFileHandle].contains(error), "step \(step), \(path): \(error)")
        }
      }
      #expect(fixture.cache.statistics.bytes <= 1 << 20 || fixture.cache.statistics.contents == 1)
    }
  }

  @Test(
    "reading all files, in whatever order, takes one pass if they fit the cache", arguments: [false, true])
  func onePass(isReversed: Bool) throws {
    let fixture = try ArchiveFixture(archive: try tar(Array(repeating: 10_000, count: 500)))
    let names = try fixture.paths()
    #expect(names.count == 500)
    for name in isReversed ? names.reversed() : names {
      let content = try fixture.content(name)
      #expect(content.count == 10_000 && Set(content) == [UInt8((Int(name) ?? 0) % 251)], "\(name)")
    }
    #expect(fixture.layer.current.container?.walk.passes == 1)
  }

  @Test("a cache of a few entries is not exceeded, and every entry read nevertheless")
  func smallCache() throws {
    let sizes = (0..<60).map { [0, 1, 5000, 60_000, 400_000, 3_000_000][$0 % 6] }
    let fixture = try ArchiveFixture(archive: try tar(sizes, mode: "w:xz"), budget: 1 << 20, threads: 2)
    var random = SplitMix64(seed: 7)
    for number in (0..<60).shuffled(using: &random) {
      let content = try fixture.content((number < 10 ? "00" : "0") + "\(number)")
      #expect(content == [UInt8](repeating: UInt8(number), count: sizes[number]))
    }
  }

  @Test("the last file of a tar archive may be a zip archive")
  func recognition() throws {
    let folder = try TemporaryFolder()
    try (folder / "in.zip").write(ZipBuilder([.init("inside", "x")]).bytes)
    try Command(["tar", "-C", folder.path, "-b1", "-cf", folder / "a", "in.zip"]).check()
    #expect(try ArchiveFixture(archive: (folder / "a").read()).paths() == ["in.zip"])
  }

  @Test("files of a plain tar archive that were read become other files, and the rest keep their numbers")
  func replaced() throws {
    let fixture = try ArchiveFixture(archive: try tar([10, 10, 2_000_000], mode: "w"))
    let names = ["000", "001", "002"]
    let numbers = try names.map { try fixture.attributes($0).identity.inode }
    let file = try fixture.open("002")
    #expect(try fixture.content("001").count == 10)
    #expect(try file.readAll().count == 2_000_000)
    try fixture.path.replace(try tar([10, 10, 2_000_000], mode: "w"))
    let difference = try #require(fixture.layer.reload())
    #expect(
      difference.items.map { String(decoding: difference.name(of: $0), as: UTF8.self) }.sorted() == [
        "001", "002",
      ])
    let present = try names.map { try fixture.attributes($0).identity.inode }
    #expect(present[0] == numbers[0] && present[1] != numbers[1] && present[2] != numbers[2])
    #expect(try file.readAll().count == 2_000_000, "the former file is still open")
  }

  @Test("a plain tar archive that is overwritten yields no byte of the new state to former readers")
  func overwritten() throws {
    let fixture = try ArchiveFixture(archive: try tar([3_000_000], mode: "w"))
    let file = try fixture.open("000")
    var byte: [UInt8] = [1]
    #expect(
      try byte.withUnsafeMutableBytes { buffer throws(Errno) in try file.read(into: buffer, at: 0) } == 1)
    try fixture.path.write(try tar([3_000_000], mode: "w"))
    #expect(throws: Errno.staleFileHandle) { try file.readAll() }
    _ = fixture.layer.reload()
    #expect(try fixture.content("000").count == 3_000_000)
  }

  @Test("a compressed archive's files keep their numbers if their content is the same")
  func kept() throws {
    let fixture = try ArchiveFixture(archive: try tar([10, 300_000]))
    let numbers = try ["000", "001"].map { try fixture.attributes($0).identity.inode }
    for path in try fixture.paths() { _ = try fixture.content(path) }
    try fixture.path.replace(try tar([10, 300_000, 5]))
    let difference = try #require(fixture.layer.reload())
    #expect(difference.items.map(\.kind) == [.created])
    #expect(try ["000", "001"].map { try fixture.attributes($0).identity.inode } == numbers)
  }

  @Test("a file of a 7z archive without a valid type is a regular file")
  func untyped() throws {
    // By hand: files of the modes 0640 and 0170644.
    let bytes = """
      N3q8ryccAAQFJ0oxBwAAAAAAAABIAAAAAAAAAH0Gb0p0ZXh0b2RkAQQGAAEJBwAHCwEAAQEADAcACA0CCQQKAcenizvtXoT3AAAFAhETAG4AbwBu
      AGUAAABvAGQAZAAAABUKAQAAgKABAICk8QAA
      """
    let archive = try #require(Data(base64Encoded: bytes, options: .ignoreUnknownCharacters))
    let fixture = try ArchiveFixture(archive: Array(archive))
    #expect(try fixture.attributes("none").mode == S_IFREG | 0o640)
    #expect(try fixture.attributes("odd").mode == S_IFREG | 0o644)
    #expect(try fixture.content("none") == Array("text".utf8))
  }

  @Test("an entry that ends before what is wanted of it is an error", .timeLimit(.minutes(1)))
  func shortEntry() throws {
    let fixture = try ArchiveFixture(archive: try tar([1000]))
    let index = fixture.layer.current
    let container = try #require(index.container)
    let number = try #require("000".withCString { index.find($0, in: ArchiveTree.root) })
    var node = index.tree[number]
    // What the entry was while the index was made.
    node.size = 5000
    let source = try ArchiveSource(path: fixture.path.bytes)
    let entry = CompressedEntry(source: source, header: 0, start: 0, node: node, container: container)
    let decoder = try SequentialDecoder(entry, container.walk)
    decoder.deliver([UInt8](repeating: 1, count: 4000))
    #expect(try decode(decoder) == 4000)
    #expect(throws: Errno.ioError) { try decode(decoder) }
  }

  @discardableResult
  private func decode(_ decoder: SequentialDecoder) throws -> Int {
    var buffer = [UInt8](repeating: 0, count: 4000)
    return try buffer.withUnsafeMutableBytes { buffer throws(Errno) in try decoder.decode(into: buffer) }
  }

  @Test("the checksum of a hole is that of its zeros")
  func zeros() {
    for count in [0, 1, 2, 3, 1000, 65_537] {
      let zeros = [UInt8](repeating: 0, count: count)
      let expected = zeros.withUnsafeBytes { $0.crc32(after: 0xDEAD_BEEF) }
      #expect(UInt32.crc32(afterZeros: UInt64(count), 0xDEAD_BEEF) == expected)
    }
  }

  @Test(
    "what is behind a huge hole is read at once, and no thread goes on to decode the hole",
    .timeLimit(.minutes(5)), arguments: ["w", "w:gz"])
  func hugeHole(mode: String) throws {
    let size = 1 << 60
    let fixture = try ArchiveFixture(
      archive: try sparseTar(size: size, mode: mode), budget: 8 << 20, threads: 2)
    let file = try fixture.open("huge")
    for (offset, byte) in [(size - 4096, UInt8(2)), (size / 2, 0), (0, 1), (size / 3, 0), (size - 4096, 2)] {
      #expect(try part(of: file, at: offset) == [UInt8](repeating: byte, count: 4096), "at \(offset)")
    }
    let isIdle = eventually(within: 60) { !file.isBeingDecoded }
    #expect(isIdle)
    #expect(fixture.cache.pool.decoded.count < 100 << 20)
  }

  /// A file with 4 KiB at its beginning and at its end, in GNU tar's format 1.0.
  private func sparseTar(size: Int, mode: String) throws -> [UInt8] {
    let folder = try TemporaryFolder()
    let script = """
      import io, sys, tarfile
      size = int(sys.argv[3])
      content = (b"2\\n0\\n4096\\n%d\\n4096\\n" % (size - 4096)).ljust(512, b"\\0") + b"\\1" * 4096 + b"\\2" * 4096
      with tarfile.open(sys.argv[1], sys.argv[2], format=tarfile.PAX_FORMAT) as archive:
          info = tarfile.TarInfo("GNUSparseFile.0/huge")
          info.size = len(content)
          names = {"major": "1", "minor": "0", "name": "huge", "realsize": str(size)}
          info.pax_headers = {"GNU.sparse." + name: value for name, value in names.items()}
          archive.addfile(info, io.BytesIO(content))
      """
    let arguments = [folder / "archive", ByteString(mode), ByteString("\(size)")]
    try Command(["python3", "-c", ByteString(script)] + arguments).check()
    return try (folder / "archive").read()
  }

  /// A page of a file; nothing if it does not become readable.
  private func part(of file: LayerFile, at offset: Int) throws -> [UInt8] {
    let isReadable = Counter()
    file.whenReadable(at: Int64(offset), count: 4096) { _ in isReadable.add(1) }
    guard eventually(within: 60, { isReadable.count > 0 }) else { return [] }
    var bytes = [UInt8](repeating: 1, count: 4096)
    let count = try bytes.withUnsafeMutableBytes { buffer throws(Errno) in
      try file.read(into: buffer, at: Int64(offset))
    }
    return Array(bytes[..<count])
  }
}
