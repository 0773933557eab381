import Foundation
import FoundationNetworking
import Glibc
import Posix
import TestSupport
import Testing

@testable import BundleResources

/// Loading from a mount, with the same results as without one.
@Suite(.serialized) struct MountedTests {
  private func setup(_ fixture: ResourceFixture) -> MountSetup {
    var setup = MountSetup(main: fixture.main, point: fixture.point, substitutions: [fixture.substitution])
    setup.options = ["languages=fr:en", ByteString("resource_scheme=\(fixture.scheme)")]
    return setup
  }

  /// A bundle with every kind of resource.
  private func populated() throws -> ResourceFixture {
    let fixture = try ResourceFixture()
    try fixture.make("page.html", "<p>Grüße</p>")
    try fixture.make("empty.txt", "")
    try fixture.make("noname", "words\n")
    try fixture.make("big.bin", size: 3 << 20)
    try fixture.makeOverridden()
    try fixture.make("sub/ü%41?.txt", "odd")
    try fixture.make("A.txt", "decoded twice")
    try (fixture.main / "dangling").makeLink(to: "nowhere")
    try (fixture.folder / "outside.txt").write("outside")
    try (fixture.main / "out").makeLink(to: fixture.folder / "outside.txt")
    try (fixture.main / "in.txt").makeLink(to: "sub/c d.txt")
    try (fixture.main / "pipe").makeNode(mode: FileKind.fifo.rawValue | 0o600)
    try (fixture.main / ByteString([0xFF, 0x2E, 0x74, 0x78, 0x74])).write("bytes")
    return fixture
  }

  private static let urls = [
    "///page.html", "///empty.txt", "///noname", "///big.bin", "///a.txt", "//localhost/a.txt", "/a.txt",
    "///b.txt", "///b.txt?localization=fr", "///b.txt?localization=de", "///b.txt?localization=it",
    "///sub/c%20d.txt?localization=fr", "///sub/c%20d.txt", "///./sub//c%20d.txt",
    "///sub/%C3%BC%2541%3F.txt",
    "///%2541.txt", "///%41.txt", "///fr.lproj/b.txt", "///in.txt", "///%FF.txt", "///nothing.txt", "///sub",
    "///sub/", "///a.txt/more", "///dangling", "///out", "///pipe", "///sub%2Fc%20d.txt", "//host/a.txt",
    "///a%00b", "///../outside.txt", "///%2e%2e/outside.txt", "///..%2Foutside.txt",
    "///..%252Foutside.txt", "///", "///sub?localization=fr", "///b.txt?localization=", "///nothing/a.txt",
    "///\(String(repeating: "n", count: 300))",
  ]

  /// The outcome of a load as text.
  private func outcome(_ source: ResourceSource, _ url: URL) -> String {
    do {
      let loaded = try source.load(url)
      let described = try source.describe(url)
      #expect(described.mimeType == loaded.mimeType && described.length == loaded.length, "\(url)")
      #expect(described.textEncodingName == loaded.textEncodingName, "\(url)")
      let encoding = loaded.textEncodingName ?? "-"
      return "\(loaded.mimeType) \(encoding) \(loaded.length) \(loaded.data.hashValue)"
    } catch {
      return "\(error.code.rawValue)"
    }
  }

  @Test("loads the same as from the bundle without a mount", .timeLimit(.minutes(1)))
  func sameResults() throws {
    let fixture = try populated()
    try withMount(setup(fixture)) { mount in
      let mounted = try ResourceSource(mountPoint: mount.point.url, scheme: fixture.scheme)
      let layered = try fixture.source()
      var found = 0
      for rest in Self.urls {
        let url = try fixture.url(rest)
        let expected = outcome(layered, url)
        if expected.contains("/") { found += 1 }
        #expect(outcome(mounted, url) == expected, "\(rest)")
      }
      #expect(found >= 15)
    }
  }

  @Test("URLSession loads from a mount and sees an edit at once", .timeLimit(.minutes(1)))
  func session() async throws {
    let fixture = try populated()
    let mount = try Mount(setup(fixture))
    defer { mount.abandon() }
    try ResourceURLProtocol.register(mountPoint: mount.point.url, scheme: fixture.scheme)
    try await withSession { session in
      let (page, response) = try await session.data(from: try fixture.url("///page.html"))
      #expect(String(decoding: page, as: UTF8.self) == "<p>Grüße</p>")
      #expect(response.mimeType == "text/html" && response.textEncodingName == "utf-8")
      #expect(response.expectedContentLength == 14)
      let url = try fixture.url("///a.txt")
      for round in 0..<20 {
        try (fixture.substitution / "a.txt").replace("round \(round)")
        let (data, _) = try await session.data(from: url)
        #expect(String(decoding: data, as: UTF8.self) == "round \(round)")
      }
      try (fixture.substitution / "a.txt").remove()
      let (main, _) = try await session.data(from: url)
      #expect(String(decoding: main, as: UTF8.self) == "main")
      let nothing = try fixture.url("///nothing")
      #expect(await code { _ = try await session.data(from: nothing) } == .fileDoesNotExist)
    }
    // The loads keep no file open.
    try mount.unmount()
  }

  @Test("completes 1,000 concurrent loads from a mount", .timeLimit(.minutes(2)))
  func concurrent() async throws {
    let fixture = try populated()
    let mount = try Mount(setup(fixture))
    defer { mount.abandon() }
    try ResourceURLProtocol.register(mountPoint: mount.point.url, scheme: fixture.scheme)
    let names = ["page.html", "a.txt", "b.txt", "noname", "sub/c%20d.txt"]
    let source = try fixture.source()
    let expected = try names.map { try source.load(try fixture.url("///\($0)")).data }
    try await withSession { session in
      try await withThrowingTaskGroup(of: Bool.self) { group in
        for number in 0..<1000 {
          let url = try fixture.url("///\(names[number % names.count])")
          group.addTask { try await session.data(from: url).0 == expected[number % names.count] }
        }
        for try await isRight in group { #expect(isRight) }
      }
    }
    try mount.unmount()
  }

  @Test(
    "resources are unavailable while unmounted and available after mounting again", .timeLimit(.minutes(1)))
  func unmounted() throws {
    let fixture = try populated()
    let source = try ResourceSource(mountPoint: fixture.point.url, scheme: fixture.scheme)
    let url = try fixture.url("///a.txt")
    #expect(code { _ = try source.load(url) } == .resourceUnavailable)
    for _ in 0..<2 {
      try withMount(setup(fixture)) { _ in
        let loaded = try source.load(url)
        #expect(String(decoding: loaded.data, as: UTF8.self) == "substitution")
      }
      #expect(code { _ = try source.load(url) } == .resourceUnavailable)
    }
    let mount = try Mount(setup(fixture))
    mount.process.signal(SIGKILL)
    _ = try mount.process.wait(timeout: 10)
    // The worker answers until it has seen that.
    let isUnavailable = eventually(within: 20) {
      code { _ = try source.load(url) } == .resourceUnavailable
    }
    #expect(isUnavailable)
    mount.abandon()
    let missing = try ResourceSource(mountPoint: (fixture.folder / "nothing").url)
    #expect(code { _ = try missing.load(url) } == .resourceUnavailable)
  }

  @Test("registering says what is no mount, or one of another scheme", .timeLimit(.minutes(1)))
  func notMounted() throws {
    let fixture = try populated()
    func reason(_ url: URL, _ scheme: String) throws -> String {
      let error = try #require(throws: URLError.self) {
        try ResourceURLProtocol.register(mountPoint: url, scheme: scheme)
      }
      #expect(error.code == .resourceUnavailable)
      #expect(!ResourceURLProtocol.registeredSchemes.contains(scheme))
      return error.localizedDescription
    }
    let point = fixture.point.url
    #expect(try reason(point, fixture.scheme) == "\(fixture.point.text): no bundlefs is mounted there")
    let nothing = (fixture.folder / "nothing").url
    #expect(try reason(nothing, fixture.scheme).hasSuffix("no such directory; no bundlefs is mounted there"))
    let source = try ResourceSource(mountPoint: point, scheme: fixture.scheme)
    let error = try #require(throws: URLError.self) { try source.load(try fixture.url("///a.txt")) }
    #expect(error.localizedDescription == "\(fixture.point.text): no bundlefs is mounted there")
    try withMount(setup(fixture)) { _ in
      #expect(try reason(point, fixture.scheme + "x").contains("another scheme than '\(fixture.scheme)x'"))
      try ResourceURLProtocol.register(mountPoint: point, scheme: fixture.scheme)
    }
  }

  @Test("a hung mount does not block other sources", .timeLimit(.minutes(1)))
  func hung() async throws {
    let (hung, other) = (try populated(), try populated())
    let mount = try Mount(setup(hung))
    defer { mount.abandon() }
    try ResourceURLProtocol.register(mountPoint: mount.point.url, scheme: hung.scheme)
    try other.register()
    try await withSession { session in
      mount.signalWorker(SIGSTOP)
      defer { mount.signalWorker(SIGCONT) }
      let ends = Locked(0)
      let tasks = (0..<20).map { _ in
        session.dataTask(with: URLRequest(url: (try? hung.url("///a.txt")) ?? URL(fileURLWithPath: "/"))) {
          _, _, _ in ends.withLock { $0 += 1 }
        }
      }
      for task in tasks { task.resume() }
      usleep(200_000)
      let loaded = Locked<Data?>(nil)
      session.dataTask(with: try other.url("///a.txt")) { data, _, _ in
        loaded.withLock { $0 = data }
      }.resume()
      #expect(eventually(within: 20) { loaded.withLock { $0 } == Data("substitution".utf8) })
      #expect(ends.withLock { $0 } == 0)
      mount.signalWorker(SIGCONT)
      #expect(eventually(within: 20) { ends.withLock { $0 } == 20 })
    }
    try mount.unmount()
  }
}
