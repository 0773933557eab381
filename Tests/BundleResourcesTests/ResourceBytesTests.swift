import BundleResources
import Foundation
import FoundationNetworking
import Posix
import TestSupport
import Testing

/// Reading a resource piece by piece, and parts of one.
@Suite struct ResourceBytesTests {
  private func bytes(_ pieces: ResourceBytes) async throws -> [UInt8] {
    var content: [UInt8] = []
    for try await piece in pieces {
      #expect(!piece.isEmpty && piece.count <= ResourceBytes.pieceSize)
      content += piece
    }
    return content
  }

  @Test("the pieces are the content, also of an archive's entry", .timeLimit(.minutes(1)))
  func content() async throws {
    let fixture = try ResourceFixture()
    let size = ResourceBytes.pieceSize
    let sizes = [0, 1, size - 1, size, size + 1, 3 * size, 1_000_003]
    for size in sizes { try fixture.make(ByteString("\(size).bin"), size: size) }
    let archive = fixture.folder / "main.zip"
    try archive.write(
      ZipBuilder(sizes.map { .init(ByteString("\($0).bin"), ResourceFixture.bytes($0), .deflated) }).bytes)
    let sources = [try fixture.source(), try ResourceSource(main: archive.url)]
    for source in sources {
      for size in sizes {
        let pieces = try await source.bytes(try fixture.url("///\(size).bin"))
        #expect(
          pieces.resource.length == size && pieces.resource.data.isEmpty && pieces.resource.range == nil)
        #expect(try await bytes(pieces) == ResourceFixture.bytes(size), "\(size)")
        #expect(try await bytes(pieces) == ResourceFixture.bytes(size), "\(size), again")
      }
    }
  }

  @Test("random ranges are those of the content", .timeLimit(.minutes(2)))
  func ranges() async throws {
    let fixture = try ResourceFixture()
    let size = 700_001
    try fixture.make("a.bin", size: size)
    let (source, url) = (try fixture.source(), try fixture.url("///a.bin"))
    let bundle = try LayeredBundle(main: fixture.main.url)
    let whole = ResourceFixture.bytes(size)
    var random = SplitMix64(seed: seed(7))
    for _ in 0..<200 {
      let start = random.number(0...size + 1000)
      let range = start..<start + random.number(0...(random.percent(50) ? 50 : size))
      let expected = Array(whole[range.clamped(to: 0..<size)])
      let loaded = try source.load(url, range: range)
      #expect([UInt8](loaded.data) == expected && loaded.length == size, "\(range)")
      #expect(loaded.range?.count == expected.count, "\(range)")
      #expect(try await bytes(try await source.bytes(url, range: range)) == expected, "\(range)")
      #expect(
        try await bytes(try await bundle.bytes(forResource: "a.bin", range: range)) == expected, "\(range)")
    }
  }

  @Test("a GiB is read in 20 MiB of memory", .timeLimit(.minutes(3)))
  func memory() async throws {
    let fixture = try ResourceFixture()
    try fixture.make("film.mp4", "")
    let size = 1 << 30
    try (fixture.main / "film.mp4").setSize(size)
    let pieces = try await fixture.source().bytes(try fixture.url("///film.mp4"))
    let before = try residentMemory()
    var (count, most) = (0, before)
    for try await piece in pieces {
      count += piece.count
      if count % (16 << 20) == 0 { most = max(most, try residentMemory()) }
    }
    #expect(count == size)
    #expect(most - before < 20 << 20, "\((most - before) >> 20) MiB")
  }

  /// Of this process, in bytes.
  private func residentMemory() throws -> Int {
    let pages = try ByteString("/proc/self/statm").readText().split(separator: " ")[1]
    return try #require(Int(pages)) * 4096
  }

  @Test("a file that is replaced is read to its own end", .timeLimit(.minutes(1)))
  func replaced() async throws {
    let fixture = try ResourceFixture()
    try fixture.make("a.bin", size: 1 << 20)
    let pieces = try await fixture.source().bytes(try fixture.url("///a.bin"))
    var content: [UInt8] = []
    for try await piece in pieces {
      if content.isEmpty {
        try (fixture.folder / "new").write("new")
        try (fixture.folder / "new").rename(to: fixture.main / "a.bin")
      }
      content += piece
    }
    #expect(content == ResourceFixture.bytes(1 << 20))
  }

  @Test("errors are those of loading", .timeLimit(.minutes(1)))
  func errors() async throws {
    let fixture = try ResourceFixture()
    try fixture.make("folder/a.txt", "a")
    let source = try fixture.source()
    let cases: [(String, URLError.Code)] = [
      ("///nothing.txt", .fileDoesNotExist), ("///folder", .fileIsDirectory), ("//host/a.txt", .badURL),
      ("///folder/../folder/a.txt", .badURL),
    ]
    for (rest, expected) in cases {
      let url = try fixture.url(rest)
      #expect(await code { _ = try await source.bytes(url) } == expected, "\(rest)")
    }
    let bundle = try LayeredBundle(main: fixture.main.url)
    do throws(URLError) {
      _ = try await bundle.bytes(forResource: "nothing", withExtension: "txt")
      Issue.record("there is no such resource")
    } catch {
      #expect(error.code == .fileDoesNotExist && error.localizedDescription.contains("'nothing.txt'"))
    }
  }

  @Test("a cancelled task ends at once, whatever the file does", .timeLimit(.minutes(1)))
  func cancelled() async throws {
    let fixture = try ResourceFixture()
    try fixture.make("a.bin", size: 1 << 20)
    let (source, url) = (try fixture.source(), try fixture.url("///a.bin"))
    let (isRead, mayEnd) = (Locked(false), Locked(false))
    let task = Task {
      await code {
        for try await _ in try await source.bytes(url) {
          isRead.withLock { $0 = true }
          while !mayEnd.withLock({ $0 }) { await Task.yield() }
        }
      }
    }
    while !isRead.withLock({ $0 }) { await Task.yield() }
    task.cancel()
    mayEnd.withLock { $0 = true }
    #expect(await task.value == .cancelled)
  }

  @Test("URLSession answers a header Range with that part", .timeLimit(.minutes(1)))
  func header() async throws {
    let fixture = try ResourceFixture()
    try fixture.make("a.txt", "0123456789")
    try fixture.make("empty", "")
    try fixture.register()
    let cases: [(String, String, String, Int, String, String?)] = [
      ("a.txt", "GET", "bytes=2-4", 206, "234", "bytes 2-4/10"),
      ("a.txt", "GET", "bytes=8-", 206, "89", "bytes 8-9/10"),
      ("a.txt", "GET", "bytes=-3", 206, "789", "bytes 7-9/10"),
      ("a.txt", "GET", "bytes=5-99999999999999999999", 206, "56789", "bytes 5-9/10"),
      ("a.txt", "GET", "bytes=10-", 416, "", "bytes */10"),
      ("empty", "GET", "bytes=0-", 416, "", "bytes */0"),
      ("a.txt", "GET", "bytes=4-2", 0, "0123456789", nil),
      ("a.txt", "GET", "bytes=0-1,4-5", 0, "0123456789", nil),
      ("a.txt", "GET", "lines=0-1", 0, "0123456789", nil),
      ("a.txt", "HEAD", "bytes=0-1", 0, "", nil),
    ]
    try await withSession { session in
      for (name, method, range, status, content, part) in cases {
        var request = URLRequest(url: try fixture.url("///\(name)"))
        request.httpMethod = method
        request.setValue(range, forHTTPHeaderField: "Range")
        let (data, response) = try await session.data(for: request)
        #expect(String(decoding: data, as: UTF8.self) == content, "\(range)")
        let http = response as? HTTPURLResponse
        #expect(http?.statusCode ?? 0 == status, "\(range)")
        #expect(http?.value(forHTTPHeaderField: "Content-Range") == part, "\(range)")
        #expect(response.mimeType == "text/plain" || name == "empty", "\(range): \(response.mimeType ?? "")")
        #expect(response.expectedContentLength == (status == 0 ? 10 : Int64(content.count)), "\(range)")
      }
    }
  }
}
