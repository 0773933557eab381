import Foundation
import FoundationNetworking
import Posix
import TestSupport
import Testing

@testable import BundleResources

/// Loads that are stopped.
@Suite struct CancelTests {
  /// What became of a task.
  private final class Fate: Sendable {
    let ends = Locked<[URLError.Code?]>([])

    func task(_ session: URLSession, _ url: URL) -> URLSessionDataTask {
      session.dataTask(with: url) { [ends] _, _, error in
        ends.withLock { $0.append((error as? URLError)?.code) }
      }
    }

    var all: [URLError.Code?] { ends.withLock { $0 } }
  }

  @Test("a task that is cancelled before it starts is never read", .timeLimit(.minutes(1)))
  func beforeStart() async throws {
    let fixture = try BundleFixture()
    try fixture.make("a.txt", "text")
    try fixture.register()
    try await withSession { session in
      let fate = Fate()
      let task = fate.task(session, try fixture.url("///a.txt"))
      task.cancel()
      task.resume()
      #expect(eventually(within: 20) { !fate.all.isEmpty })
      #expect(fate.all == [.cancelled])
    }
  }

  @Test("tasks that are cancelled at any moment end once, cancelled or whole", .timeLimit(.minutes(3)))
  func anyMoment() async throws {
    let fixture = try BundleFixture()
    try fixture.make("big.bin", size: 4 << 20)
    try fixture.register()
    let url = try fixture.url("///big.bin")
    var random = SplitMix64(seed: seed(41))
    var cancelled = 0
    try await withSession { session in
      for round in 0..<300 {
        let fate = Fate()
        let task = fate.task(session, url)
        task.resume()
        if round % 3 > 0 { usleep(UInt32.random(in: 0..<4000, using: &random)) }
        task.cancel()
        #expect(eventually(within: 20) { !fate.all.isEmpty })
        #expect(fate.all.count == 1 && (fate.all[0] == nil || fate.all[0] == .cancelled), "\(fate.all)")
        if fate.all[0] != nil { cancelled += 1 }
      }
    }
    #expect(cancelled >= 50, "\(cancelled)")
  }

  @Test("cancelled loads let go of their files and threads at once", .timeLimit(.minutes(2)))
  func middle() async throws {
    let fixture = try BundleFixture()
    try fixture.make("big.bin", "")
    // Sparse: it takes no room, but long to read.
    try (fixture.main / "big.bin").setSize(1 << 30)
    try fixture.make("small.txt", "small")
    try fixture.register()
    try await withSession { session in
      let fates = (0..<100).map { _ in Fate() }
      let url = try fixture.url("///big.bin")
      let tasks = fates.map { $0.task(session, url) }
      for task in tasks { task.resume() }
      #expect(eventually(within: 10) { Self.descriptors(of: fixture.main / "big.bin") > 0 })
      for task in tasks { task.cancel() }
      #expect(eventually(within: 20) { fates.allSatisfy { $0.all == [.cancelled] } })
      // Reading all 100 GiB would take longer.
      #expect(eventually(within: 20) { Self.descriptors(of: fixture.main / "big.bin") == 0 })
      let (data, _) = try await session.data(from: try fixture.url("///small.txt"))
      #expect(String(decoding: data, as: UTF8.self) == "small")
    }
  }

  @Test("a task that is suspended and resumed is answered once, and whole", .timeLimit(.minutes(3)))
  func suspended() async throws {
    let fixture = try BundleFixture()
    try fixture.make("big.bin", size: 4 << 20)
    try fixture.register()
    let url = try fixture.url("///big.bin")
    var random = SplitMix64(seed: seed(42))
    try await withSession { session in
      for round in 0..<100 {
        let fate = Fate()
        let task = fate.task(session, url)
        task.resume()
        for _ in 0..<round % 4 {
          usleep(UInt32.random(in: 0..<2000, using: &random))
          task.suspend()
          usleep(UInt32.random(in: 0..<500, using: &random))
          task.resume()
        }
        #expect(eventually(within: 20) { !fate.all.isEmpty }, "round \(round)")
        #expect(fate.all == [nil], "round \(round)")
      }
    }
  }

  @Test("suspending and resuming without a pause until the end harms nothing", .timeLimit(.minutes(3)))
  func hammered() async throws {
    let fixture = try BundleFixture()
    try fixture.make("a.txt", "text")
    try fixture.register()
    let url = try fixture.url("///a.txt")
    try await withSession { session in
      for round in 0..<800 {
        let fate = Fate()
        let task = fate.task(session, url)
        task.resume()
        // Time to be read, which a suspension would begin anew.
        usleep(UInt32(round % 8) * 20)
        for _ in 0..<100_000 where fate.all.isEmpty {
          task.suspend()
          task.resume()
          if round % 3 == 0 { usleep(100) }
        }
        #expect(eventually(within: 20) { fate.all == [nil] }, "round \(round): \(fate.all)")
      }
    }
  }

  @Test("a suspended task is not answered before it is resumed", .timeLimit(.minutes(1)))
  func held() async throws {
    let fixture = try BundleFixture()
    try fixture.make("a.txt", "text")
    try fixture.register()
    try await withSession { session in
      let fate = Fate()
      let task = fate.task(session, try fixture.url("///a.txt"))
      task.resume()
      task.suspend()
      // It may have been answered before it was suspended.
      usleep(200_000)
      let early = fate.all.count
      usleep(200_000)
      #expect(fate.all.count == early)
      task.resume()
      #expect(eventually(within: 20) { fate.all == [nil] })
    }
  }

  @Test("a client without a task hears nothing after the stop", .timeLimit(.minutes(2)))
  func client() throws {
    let fixture = try BundleFixture()
    try fixture.make("big.bin", size: 1 << 20)
    try fixture.register()
    var random = SplitMix64(seed: seed(43))
    var whole = 0
    for _ in 0..<300 {
      let client = Client()
      let load = ResourceURLProtocol(
        request: URLRequest(url: try fixture.url("///big.bin")), cachedResponse: nil, client: client)
      load.startLoading()
      usleep(UInt32.random(in: 0..<1500, using: &random))
      load.stopLoading()
      let heard = client.events
      usleep(100)
      #expect(client.events == heard && (heard.isEmpty || heard == ["response", "data 1048576", "end"]))
      if !heard.isEmpty { whole += 1 }
    }
    let client = Client()
    let load = ResourceURLProtocol(
      request: URLRequest(url: try fixture.url("///nothing")), cachedResponse: nil, client: client)
    load.startLoading()
    #expect(eventually(within: 20) { client.events == ["error"] })
    #expect(whole < 300)
  }

  /// How many descriptors of this process are open on a file.
  private static func descriptors(of path: ByteString) -> Int {
    let folder = ByteString("/proc/self/fd")
    let names = (try? folder.names()) ?? []
    return names.filter { (try? (folder / $0).linkTarget()) == path }.count
  }
}

/// A client that notes what it hears.
private final class Client: NSObject, URLProtocolClient {
  private let heard = Locked<[String]>([])

  var events: [String] { heard.withLock { $0 } }

  private func hear(_ event: String) { heard.withLock { $0.append(event) } }

  func urlProtocol(
    _ urlProtocol: URLProtocol, didReceive response: URLResponse, cacheStoragePolicy: URLCache.StoragePolicy
  ) { hear("response") }
  func urlProtocol(_ urlProtocol: URLProtocol, didLoad data: Data) { hear("data \(data.count)") }
  func urlProtocolDidFinishLoading(_ urlProtocol: URLProtocol) { hear("end") }
  func urlProtocol(_ urlProtocol: URLProtocol, didFailWithError error: any Error) { hear("error") }
  func urlProtocol(
    _ urlProtocol: URLProtocol, wasRedirectedTo request: URLRequest, redirectResponse: URLResponse
  ) { hear("redirect") }
  func urlProtocol(_ urlProtocol: URLProtocol, cachedResponseIsValid cachedResponse: CachedURLResponse) {
    hear("cached")
  }
  func urlProtocol(_ urlProtocol: URLProtocol, didReceive challenge: URLAuthenticationChallenge) {
    hear("challenge")
  }
  func urlProtocol(_ urlProtocol: URLProtocol, didCancel challenge: URLAuthenticationChallenge) {
    hear("challenge cancelled")
  }
}
