import Routing
import Testing

@testable import Volume

/// The URLs of the scheme `bundlefs:`.
@Suite struct BuiltInCommandTests {
  private func read(_ url: String) throws -> BuiltInCommand { try BuiltInCommand(RouteURL(Array(url.utf8))) }

  @Test("sync, and invalidate with a path or without")
  func valid() throws {
    #expect(try read("bundlefs:///sync") == .sync)
    #expect(try read("BundleFS:/sync/") == .sync)
    #expect(try read("bundlefs:///invalidate") == .invalidate([]))
    #expect(try read("bundlefs:///invalidate/") == .invalidate([]))
    let path = [[97], Array("with space".utf8), [255]]
    #expect(try read("bundlefs:///invalidate/a/with%20space/%ff") == .invalidate(path))
    #expect(try read("bundlefs:///invalidate//a//b") == .invalidate([[97], [98]]))
  }

  @Test("layers takes absolute paths, and nothing that would make a path another one")
  func layers() throws {
    #expect(try read("bundlefs:///layers") == .layers([]))
    let paths = [Array("/a b".utf8), Array("/c#d".utf8)]
    #expect(try read("bundlefs:///layers?substitution=/a%20b&substitution=/c%23d") == .layers(paths))
    for query in ["substitution=a", "substitution=", "substitution=/a%00", "other=/a", "substitution=/c#d"] {
      let error = try #require(throws: RoutingError.self) { try read("bundlefs:///layers?\(query)") }
      #expect(error.code == .malformed, "\(query)")
    }
  }

  @Test(
    "any other URL is rejected with ENOENT",
    arguments: [
      "bundlefs:", "bundlefs:///", "bundlefs:///nothing", "bundlefs:///sync/more", "bundlefs:///Sync",
      "bundlefs://sync", "bundlefs://sync/sync", "bundlefs://invalidate/path",
    ])
  func unknown(url: String) throws {
    let error = try #require(throws: RoutingError.self) { try read(url) }
    #expect(error.code == .noRoute)
  }

  @Test(
    "a path with a name that no file can have is rejected with EINVAL",
    arguments: ["%00", "a/%00b", "%2f", "a%2Fb/c"])
  func impossible(path: String) throws {
    let error = try #require(throws: RoutingError.self) { try read("bundlefs:///invalidate/\(path)") }
    #expect(error.code == .malformed)
  }
}
