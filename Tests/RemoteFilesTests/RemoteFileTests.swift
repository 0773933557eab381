import Glibc
import Posix
import TestSupport
import Testing

@testable import RemoteFiles

/// A server that answers wrongly, for the files of a folder.
final class WrongServer {
  let folder: TemporaryFolder
  private let child: Child
  let port: Int

  init() throws {
    folder = try TemporaryFolder()
    let script = ByteString(#filePath).parent / "wrong_server.py"
    child = try Child(Command(["python3", script, folder.path]))
    var found: Int?
    let child = child
    _ = eventually(within: 20) {
      found = child.outputText.split(separator: "\n").first.flatMap { Int($0) }
      return found != nil
    }
    guard let found else { throw TestFailure("the server has not started: \(child.errorText)") }
    port = found
  }

  deinit { try? child.kill() }

  func stop() throws { try child.kill() }

  var requests: Int { child.outputText.split(separator: "\n").count - 1 }

  func file(_ fault: String, name: String = "a", _ settings: RemoteSettings? = nil) throws -> RemoteFile {
    let url = try #require(RemoteURL(Array("http://127.0.0.1:\(port)/\(fault)/\(name)".utf8)))
    return try RemoteFile(url, settings ?? self.settings)
  }

  /// With a short timeout, and a cache in the folder.
  var settings: RemoteSettings {
    var settings = RemoteSettings()
    (settings.timeout, settings.refresh) = (1500, 100)
    let path = (folder / "cache").bytes
    settings.openFolder = { try? CacheFolder(path, limit: 1 << 30) }
    return settings
  }
}

extension RemoteObject {
  func bytes(_ range: Range<UInt64>? = nil) throws -> [UInt8] {
    let range = range ?? 0..<size
    var bytes = [UInt8](repeating: 0, count: range.count)
    try bytes.withUnsafeMutableBytes { try read(into: $0, at: range.lowerBound) }
    return bytes
  }
}

private func content(_ size: Int, seed: UInt64 = 1) -> [UInt8] {
  var random = SplitMix64(seed: seed)
  return (0..<size).map { _ in UInt8(truncatingIfNeeded: random.next()) }
}

@Suite(.serialized) struct RemoteFileTests {
  /// More than what is asked for first.
  private static let size = 3 << 20 | 12345

  @Test("a file is read by ranges, and from the cache by another process without the server")
  func ranges() throws {
    let (server, expected) = (try WrongServer(), content(Self.size))
    try (server.folder / "a").write(expected)
    let object = try server.file("good").open()
    #expect(!object.isWhole && object.size == UInt64(Self.size))
    #expect(try object.bytes(100..<300_000) == Array(expected[100..<300_000]))
    #expect(try object.bytes() == expected)
    let asked = server.requests
    #expect(asked >= 3 && asked <= 12)
    let again = try server.file("good").open()
    #expect(try again.bytes() == expected)
    #expect(server.requests == asked + 1)
    try server.stop()
    let offline = try server.file("good").open()
    #expect(try offline.bytes() == expected)
  }

  @Test(
    "servers without ranges, suffix ranges or lengths are read nevertheless",
    arguments: [("whole", true), ("bare", true), ("nosuffix", false), ("redirect", false)])
  func others(kind: String, isWhole: Bool) throws {
    let (server, expected) = (try WrongServer(), content(Self.size))
    try (server.folder / "a").write(expected)
    let object = try server.file(kind).open()
    #expect(object.isWhole == isWhole)
    #expect(try object.bytes() == expected)
  }

  @Test("no redirect leads to local files, and refusals are errors")
  func refused() throws {
    let server = try WrongServer()
    try (server.folder / "a").write("local")
    for (kind, name) in [("local", "a"), ("forbidden", "a"), ("good", "missing")] {
      #expect(throws: RemoteFault.self) { try server.file(kind, name: name).open() }
    }
    #expect(throws: RemoteFault.self) { try server.file("cutwhole").open() }
    #expect(throws: RemoteFault.violation("too many redirects")) { try server.file("loop").open() }
  }

  @Test("headers of a file are sent to the server that the URL names, and to no other")
  func headers() throws {
    let (server, expected) = (try WrongServer(), content(Self.size))
    try (server.folder / "a").write(expected)
    let file = server.folder / "headers"
    try file.write("# comment\n[127.0.0.1:\(server.port)]\r\nX-Token:  right\n")
    var settings = server.settings
    settings.headers = HeadersFile(file.bytes)
    #expect(try server.file("token", settings).open().bytes() == expected)
    #expect(try server.file("elsewhere", settings).open().bytes() == expected)
    #expect(throws: RemoteFault.status(403)) { try server.file("leaked", settings).open() }
    #expect(throws: RemoteFault.status(403)) { try server.file("token").open() }
  }

  @Test("headers are read again when their file was changed, and errors in it are reported")
  func changedHeaders() throws {
    let (server, file) = (try WrongServer(), try TemporaryFolder())
    try (server.folder / "a").write(content(Self.size))
    var settings = server.settings
    settings.headers = HeadersFile((file / "headers").bytes)
    func message() -> String? {
      do {
        _ = try server.file("token", settings).open()
        return nil
      } catch { return (error as? RemoteFault)?.message }
    }
    let refused = RemoteFault.status(403).message
    #expect(message()?.contains("http_headers_file: No such file") == true)
    try (file / "headers").write("X-Token: wrong\n")
    #expect(message() == refused)
    try (file / "other").write("X-Token: right")
    try (file / "other").rename(to: file / "headers")
    #expect(message() == nil)
    try (file / "headers").write("X-Token: right\nRange: bytes=0-1\n")
    #expect(message() == "http_headers_file: line 2: bundlefs itself sets 'Range'")
    try (file / "headers").remove()
    try Command(["mkfifo", file / "headers"]).check()
    #expect(message()?.contains("http_headers_file") == true)
  }

  @Test(
    "a wrong answer is an error, never other bytes, and is forgotten once the server is right",
    arguments: [
      "total", "shifted", "nonsense", "negative", "none", "long", "short", "cut", "huge", "packed", "headers",
    ])
  func wrong(kind: String) throws {
    let (server, expected) = (try WrongServer(), content(Self.size))
    try (server.folder / "a").write(expected)
    var file = try server.file(kind)
    var object = try file.open()
    try (server.folder / "later").write("")
    #expect(throws: Errno.self) { try object.bytes(0..<1000) }
    // What was read before is still there.
    let tail = UInt64(Self.size - 1000)..<UInt64(Self.size)
    #expect(try object.bytes(tail) == Array(expected.suffix(1000)))
    try (server.folder / "later").remove()
    if object.hasChanged {
      file = try server.file(kind)
      object = try file.open()
    }
    #expect(try object.bytes() == expected)
  }

  @Test(
    "bytes of two states are never mixed, with and without conditional requests",
    arguments: ["good", "unconditional", "whole"])
  func changed(kind: String) throws {
    let (server, first, second) = (try WrongServer(), content(Self.size), content(Self.size, seed: 2))
    try (server.folder / "a").write(first)
    let file = try server.file(kind)
    let object = try file.open()
    #expect(try object.bytes(0..<1000) == Array(first[..<1000]))
    try (server.folder / "b").write(second)
    try (server.folder / "b").rename(to: server.folder / "a")
    if kind != "whole" {
      #expect(throws: Errno.ioError) { try object.bytes(1 << 20..<2 << 20) }
      #expect(object.hasChanged)
    }
    let answers = Counter()
    file.follow { answers.add(1) }
    #expect(eventually(within: 20) { file.present !== object })
    #expect(try #require(file.present).bytes() == second)
    // The former state's cached bytes can still be read.
    #expect(try object.bytes(0..<1000) == Array(first[..<1000]))
    #expect(eventually(within: 20) { answers.count > 1 })
  }

  @Test(
    "damaged blocks of the cache are fetched again",
    arguments: Seeds.chosen(TestLength.of(full: 40, brief: 4)))
  func damage(seed: UInt64) throws {
    let (server, expected) = (try WrongServer(), content(Self.size, seed: seed))
    try (server.folder / "a").write(expected)
    #expect(try server.file("good").open().bytes() == expected)
    let name = try #require(try (server.folder / "cache").names().first { $0.text.hasSuffix(".blocks") })
    var random = SplitMix64(seed: seed)
    let path = server.folder / "cache" / name
    try path.withOpen(O_WRONLY) { file in
      for _ in 0..<5 {
        let byte = [UInt8.random(in: 0...255, using: &random)]
        _ = pwrite(file, byte, 1, off_t.random(in: 0..<3 << 20, using: &random))
      }
      if seed % 3 == 0 { ftruncate(file, off_t.random(in: 4096..<2 << 20, using: &random)) }
    }
    #expect(try server.file("good").open().bytes() == expected)
  }

  @Test("a cache folder that others may enter, or a link, is not used")
  func folder() throws {
    let folder = try TemporaryFolder()
    let open = try folder.folder("open")
    try open.setMode(0o755)
    #expect(throws: Errno.notPermitted) { try CacheFolder(open.bytes, limit: 0) }
    try open.setMode(0o700)
    symlink("open", (folder / "link").text)
    #expect(throws: Errno.self) { try CacheFolder((folder / "link").bytes, limit: 0) }
    _ = try CacheFolder((folder / "new").bytes, limit: 0)
    let mode = try Descriptor.open((folder / "new").bytes, [.pathOnly]).attributes().mode
    #expect(mode & 0o777 == 0o700)
  }

  @Test("links and files of others in the cache folder are replaced")
  func planted() throws {
    let (server, expected) = (try WrongServer(), content(100_000))
    try (server.folder / "a").write(expected)
    #expect(try server.file("good").open().bytes() == expected)
    let cache = server.folder / "cache"
    let name = try #require(try cache.names().first)
    let victim = server.folder / "victim"
    try victim.write("victim")
    try (cache / name).remove()
    symlink(victim.text, (cache / name).text)
    #expect(try server.file("good").open().bytes() == expected)
    #expect(try victim.readText() == "victim")
  }

  @Test("the cache keeps to its limit, and what is removed is fetched again")
  func limit() throws {
    let (server, expected) = (try WrongServer(), content(24 << 20))
    for name in ["a", "b"] { try (server.folder / ByteString(name)).write(expected) }
    var settings = server.settings
    let path = (server.folder / "cache").bytes
    settings.openFolder = { try? CacheFolder(path, limit: 8 << 20) }
    settings.timeout = 20_000
    for name in ["a", "b"] {
      let object = try server.file("good", name: name, settings).open()
      #expect(try object.bytes() == expected)
      #expect(object.file.usedBytes <= 26 << 20)
    }
    // Nothing has the first any more.
    #expect(try (server.folder / "cache").names().count == 1)
  }

  @Test("a server that has ended makes reads wait, and no longer than allowed; what is cached is read")
  func ended() throws {
    let (server, expected) = (try WrongServer(), content(Self.size))
    try (server.folder / "a").write(expected)
    let object = try server.file("good").open()
    try server.stop()
    let begun = TimeSpec.monotonic
    #expect(throws: Errno.timedOut) { try object.bytes(0..<10) }
    #expect(TimeSpec.monotonic.milliseconds(since: begun) < 10_000)
    #expect(try object.bytes(UInt64(Self.size) - 10..<UInt64(Self.size)) == Array(expected.suffix(10)))
  }
}
