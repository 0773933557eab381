import Foundation
import FoundationNetworking
import Posix
import TestSupport
import Testing

@testable import BundleResources

/// Loading from a bundle and its substitution, without a mount and without URLSession.
@Suite struct SourceTests {
  @Test("loads content, MIME type, length and encoding")
  func kinds() throws {
    let fixture = try ResourceFixture()
    try fixture.make("page.html", "<p>Grüße</p>")
    try fixture.make("logo.png", "\u{89}PNG")
    try fixture.make("empty.txt", "")
    try fixture.make("noname", "words\n")
    try (fixture.main / "latin.txt").write([0x47, 0x72, 0xFC, 0xDF, 0x65])
    try (fixture.main / "wide.txt").write([0xFF, 0xFE, 0x41, 0x00])
    try (fixture.main / "noname.bin2").write([0, 1, 2, 3])
    let expected: [(String, String, String?, Int)] = [
      ("page.html", "text/html", "utf-8", 14), ("logo.png", "image/png", nil, 5),
      ("empty.txt", "text/plain", "utf-8", 0), ("noname", "text/plain", "utf-8", 6),
      ("latin.txt", "text/plain", nil, 5), ("wide.txt", "text/plain", "utf-16le", 4),
      ("noname.bin2", "application/octet-stream", nil, 4),
    ]
    let source = try fixture.source()
    for (name, type, encoding, length) in expected {
      let loaded = try source.load(try fixture.url("///\(name)"))
      let content = try (fixture.main / ByteString(name)).read()
      #expect([UInt8](loaded.data) == content, "\(name)")
      #expect(loaded.mimeType == type && loaded.textEncodingName == encoding, "\(name): \(loaded)")
      #expect(loaded.length == length && loaded.response.expectedContentLength == Int64(length), "\(name)")
      let described = try source.describe(try fixture.url("///\(name)"))
      #expect(described.data.isEmpty && described.mimeType == type && described.length == length, "\(name)")
      #expect(described.textEncodingName == encoding, "\(name)")
    }
  }

  @Test("a file's extended attribute determines its MIME type")
  func attribute() throws {
    let fixture = try ResourceFixture()
    try fixture.make("data.txt", "{}")
    try (fixture.main / "data.txt").setAttribute("user.mime_type", [UInt8]("application/json".utf8))
    #expect(try fixture.source().load(try fixture.url("///data.txt")).mimeType == "application/json")
  }

  @Test("the first 64 KiB determine the encoding, even if they end within a character")
  func longText() throws {
    let fixture = try ResourceFixture()
    // The 64 KiB end within a character.
    let text = "a" + String(repeating: "é", count: 40_000)
    try fixture.make("long.txt", text)
    try (fixture.main / "late.txt").write([UInt8](text.utf8) + [0xFF])
    let source = try fixture.source()
    for name in ["long.txt", "late.txt"] {
      let loaded = try source.load(try fixture.url("///\(name)"))
      #expect(loaded.textEncodingName == "utf-8", "\(name)")
      #expect(try source.describe(loaded.url).textEncodingName == "utf-8", "\(name)")
    }
  }

  @Test("looks in the substitution first and prefers languages in order")
  func order() throws {
    let fixture = try ResourceFixture()
    try fixture.makeOverridden()
    let source = try fixture.source()
    let expected: [(String, String)] = [
      ("///a.txt", "substitution"), ("//localhost/a.txt", "substitution"), ("///b.txt", "substitution en"),
      ("///b.txt?localization=fr", "main fr"), ("///b.txt?localization=de", "main de"),
      ("///sub/c%20d.txt", "main sub"), ("///./sub//c%20d.txt", "main sub"), ("/a.txt", "substitution"),
    ]
    for (rest, content) in expected {
      #expect(
        String(decoding: try source.load(try fixture.url(rest)).data, as: UTF8.self) == content, "\(rest)")
    }
  }

  @Test("options select languages and image variants")
  func options() throws {
    let fixture = try ResourceFixture()
    for name in ["logo.png", "logo@2x.png", "logo~ipad.png", "logo@2x~ipad.png"] as [ByteString] {
      try fixture.make(name, name.text)
    }
    try fixture.make("pt.lproj/x.txt", "pt")
    let expected: [(LookupOptions, String)] = [
      (LookupOptions(), "logo.png"), (LookupOptions(scale: 2), "logo@2x.png"),
      (LookupOptions(scale: 2, idiom: .pad), "logo@2x~ipad.png"),
      (LookupOptions(idiom: .pad), "logo~ipad.png"),
    ]
    for (options, name) in expected {
      let loaded = try fixture.source(options).load(try fixture.url("///logo.png"))
      #expect(String(decoding: loaded.data, as: UTF8.self) == name, "\(options)")
    }
    let brazil = try fixture.source(LookupOptions(languages: ["pt-BR"]))
    #expect(String(decoding: try brazil.load(try fixture.url("///x.txt")).data, as: UTF8.self) == "pt")
    #expect(
      code { _ = try fixture.source(LookupOptions(languages: [])).load(try fixture.url("///x.txt")) }
        == .fileDoesNotExist)
  }

  @Test("the error for a URL without a resource has the reason's code")
  func errors() throws {
    let fixture = try ResourceFixture()
    try fixture.make("folder/file.txt", "x")
    try (fixture.folder / "outside.txt").write("outside")
    try (fixture.main / "dangling").makeLink(to: "nowhere")
    try (fixture.main / "out").makeLink(to: fixture.folder / "outside.txt")
    try (fixture.main / "climbs").makeLink(to: "../outside.txt")
    try (fixture.main / "in").makeLink(to: "folder/file.txt")
    try (fixture.main / "pipe").makeNode(mode: FileKind.fifo.rawValue | 0o600)
    let source = try fixture.source()
    let long = String(repeating: "n", count: 300)
    let expected: [(String, URLError.Code?)] = [
      ("///in", nil), ("///nothing.txt", .fileDoesNotExist), ("///folder", .fileIsDirectory),
      ("///folder/", .fileIsDirectory), ("///folder/file.txt/more", .fileDoesNotExist),
      ("///dangling", .fileDoesNotExist), ("///out", .fileDoesNotExist), ("///climbs", .fileDoesNotExist),
      ("///pipe", .cannotOpenFile), ("///\(long)", .fileDoesNotExist),
      ("///folder%2Ffile.txt", .fileDoesNotExist), ("//host/folder/file.txt", .badURL),
      ("///a%00b", .badURL), ("///../outside.txt", .badURL), ("///%2e%2e/outside.txt", .badURL),
      ("///..%2Foutside.txt", .badURL), ("///", .badURL), ("///in?localization=", .badURL),
      ("///in?localization=..%2Ffr", .badURL), ("///%FF", .fileDoesNotExist),
    ]
    for (rest, expected) in expected {
      let url = try fixture.url(rest)
      #expect(code { _ = try source.load(url) } == expected, "\(rest)")
      #expect(code { _ = try source.describe(url) } == expected, "\(rest)")
    }
  }

  @Test("an error has the URL and the POSIX error")
  func information() throws {
    let fixture = try ResourceFixture()
    let url = try fixture.url("///nothing.txt")
    let error = try #require(throws: URLError.self) { try fixture.source().load(url) }
    #expect(error.failingURL == url)
    #expect(error.localizedDescription.contains("No such file"), "\(error.localizedDescription)")
    let underlying = try #require(error.errorUserInfo[NSUnderlyingErrorKey] as? NSError)
    #expect(underlying.domain == NSPOSIXErrorDomain && underlying.code == Int(ENOENT))
  }

  @Test("missing directories and files are not accepted as layers")
  func badDirectories() throws {
    let fixture = try ResourceFixture()
    try fixture.make("file", "x")
    let cases: [(URL, URLError.Code)] = [
      ((fixture.main / "nothing").url, .fileDoesNotExist), ((fixture.main / "file").url, .cannotOpenFile),
      ((fixture.main / "file/more").url, .fileDoesNotExist),
      (try #require(URL(string: "http://host/main")), .badURL),
    ]
    for (url, expected) in cases {
      #expect(code { _ = try ResourceSource(main: url) } == expected, "\(url)")
      #expect(
        code { _ = try ResourceSource(main: fixture.main.url, substitution: [url]) } == expected, "\(url)")
    }
    #expect(
      code { try ResourceURLProtocol.register(try fixture.source(), scheme: "no scheme") } == .unsupportedURL)
    try (fixture.main / "pipe").makeNode(mode: FileKind.fifo.rawValue | 0o600)
    #expect(code { _ = try ResourceSource(main: (fixture.main / "pipe").url) } == .cannotOpenFile)
  }

  @Test("a change is visible in the next load, also in a directory that is created again")
  func live() throws {
    let fixture = try ResourceFixture()
    try fixture.make("a.txt", "main")
    let source = try fixture.source()
    let url = try fixture.url("///a.txt")
    let load = { String(decoding: try source.load(url).data, as: UTF8.self) }
    #expect(try load() == "main")
    try fixture.override("a.txt", "override")
    #expect(try load() == "override")
    try (fixture.substitution / "a.txt").replace("another override")
    #expect(try load() == "another override")
    try fixture.substitution.rename(to: fixture.folder / "old")
    try fixture.substitution.makeDirectory()
    #expect(try load() == "main")
    try fixture.override("a.txt", "anew")
    #expect(try load() == "anew")
    try (fixture.substitution / ".wh.a.txt").write("")
    try (fixture.substitution / "a.txt").remove()
    #expect(code { _ = try load() } == .fileDoesNotExist)
  }

  @Test("an unreadable file is a permission error")
  func permission() throws {
    let fixture = try ResourceFixture()
    try fixture.make("secret.txt", "x")
    try (fixture.main / "secret.txt").setMode(0)
    // Root reads everything.
    let expected: URLError.Code? = geteuid() == 0 ? nil : .noPermissionsToReadFile
    #expect(code { _ = try fixture.source().load(try fixture.url("///secret.txt")) } == expected)
    #expect(URLError(.permissionDenied, fixture.main.url).code == .noPermissionsToReadFile)
  }

  @Test("a cancelled load ends early")
  func cancelled() throws {
    let fixture = try ResourceFixture()
    try fixture.make("big.bin", size: 5 << 20)
    let source = try fixture.source()
    let url = try fixture.url("///big.bin")
    var calls = 0
    let result = try source.load(url, part: .all) {
      calls += 1
      return calls < 3
    }
    #expect(result == nil && calls == 3)
    #expect([UInt8](try source.load(url).data) == ResourceFixture.bytes(5 << 20))
  }
}
