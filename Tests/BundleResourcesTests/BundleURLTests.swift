import BundleResources
import Foundation
import FoundationNetworking
import TestSupport
import Testing

/// The URLs that a bundle gives for files in archives.
@Suite(.serialized) struct BundleURLTests {
  private static func text(_ url: URL) async throws -> String {
    try await withSession { String(decoding: try await $0.data(from: url).0, as: UTF8.self) }
  }

  /// A bundle in an archive.
  private static func bundle(_ files: [String: String]) throws -> (LayeredBundle, ResourceFixture) {
    let fixture = try ResourceFixture()
    let entries = files.sorted { $0.key < $1.key }.map { ZipBuilder.Entry(ByteString($0.key), $0.value) }
    let path = fixture.folder / "layer.zip"
    try path.write(ZipBuilder(entries).bytes)
    let options = LookupOptions(languages: ["fr", "en"])
    return (try LayeredBundle(main: URL(fileURLWithPath: path.text), options: options), fixture)
  }

  @Test("two bundles, whatever is registered: each URL loads the file of its bundle")
  func two() async throws {
    let (a, fixtureA) = try Self.bundle(["logo.txt": "of a"])
    let (b, fixtureB) = try Self.bundle(["logo.txt": "of b"])
    func expectOwn(_ scheme: String) async throws {
      for (bundle, content) in [(a, "of a"), (b, "of b")] {
        let url = try #require(bundle.url(forResource: "logo", withExtension: "txt"))
        #expect(try await Self.text(url) == content, "\(url)")
        #expect(try ResourceSource(bundle: a).load(url).data == Data(content.utf8))
        if bundle === b { #expect(url.scheme == scheme) }
      }
    }
    try await expectOwn("rsrc")
    let early = try #require(a.url(forResource: "logo.txt"))
    try ResourceURLProtocol.register(ResourceSource(bundle: a), scheme: fixtureA.scheme)
    try ResourceURLProtocol.register(ResourceSource(bundle: b), scheme: fixtureB.scheme)
    #expect(a.url(forResource: "logo.txt")?.scheme == fixtureA.scheme)
    try await expectOwn(fixtureB.scheme)
    try ResourceURLProtocol.register(ResourceSource(bundle: b), scheme: fixtureA.scheme)
    #expect(a.url(forResource: "logo.txt")?.scheme == "rsrc")
    #expect(try await Self.text(early) == "of a")
    ResourceURLProtocol.unregister(scheme: fixtureB.scheme)
    ResourceURLProtocol.unregister(scheme: fixtureA.scheme)
    try await expectOwn("rsrc")
  }

  @Test("a URL loads the file for which it was given, and references relative to it what is localized")
  func exact() async throws {
    let (bundle, _) = try Self.bundle([
      "Resources/a b.txt": "unlocalized", "Resources/fr.lproj/a b.txt": "fr",
      "Resources/en.lproj/a b.txt": "en",
      "Resources/sub/page.html": "page", "Resources/fr.lproj/sub/style.css": "style",
      "Resources/logo%2F.txt": "percent", "Info.plist": "{}",
    ])
    let urls = bundle.urls(forResourcesWithExtension: "txt")
    var contents: [String] = []
    for url in urls { contents.append(try await Self.text(url)) }
    #expect(contents == ["unlocalized", "en", "fr", "percent"], "\(urls)")
    let page = try #require(bundle.url(forResource: "page", withExtension: "html", subdirectory: "sub"))
    let style = try #require(URL(string: "style.css", relativeTo: page))
    #expect(try await Self.text(style.absoluteURL) == "style")
    let outside = try #require(URL(string: "../../Info.plist", relativeTo: page))
    #expect(await code { _ = try await Self.text(outside.absoluteURL) } == .fileDoesNotExist)
  }

  @Test("without its bundle a URL loads nothing")
  func gone() async throws {
    let (other, fixture) = try Self.bundle(["logo.txt": "other"])
    func url() throws -> URL {
      let (bundle, _) = try Self.bundle(["logo.txt": "gone"])
      return try #require(bundle.url(forResource: "logo.txt"))
    }
    let url = try url()
    let error = try #require(throws: URLError.self) { try ResourceSource(bundle: other).load(url) }
    #expect(
      error.code == .resourceUnavailable && error.localizedDescription.contains("does not exist any more"))
    #expect(await code { _ = try await Self.text(url) } != nil)
    // A host that looks like a bundle's name in a URL of another scheme is not ours.
    let own = try #require(other.url(forResource: "logo.txt")).absoluteString
    let foreign = try #require(URL(string: own.replacingOccurrences(of: "rsrc:", with: "http:")))
    #expect(!ResourceURLProtocol.canInit(with: URLRequest(url: foreign)))
    _ = fixture
  }
}
