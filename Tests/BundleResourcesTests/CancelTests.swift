import Foundation
import FoundationNetworking
import Posix
import TestSupport
import Testing

@testable import BundleResources

/// Cancelled and suspended loads.
@Suite struct CancelTests {
  /// Records the completions of a task.
  private final class Completion: Sendable {
    private let errors = Locked<[URLError.Code?]>([])

    func task(_ session: URLSession, _ url: URL) -> URLSessionDataTask {
      session.dataTask(with: url) { [errors] _, _, error in
        errors.withLock { $0.append((error as? URLError)?.code) }
      }
    }

    var all: [URLError.Code?] { errors.withLock { $0 } }
  }

  @Test("a task that is cancelled before it starts is not read", .timeLimit(.minutes(1)))
  func beforeStart() async throws {
    let fixture = try ResourceFixture()
    try fixture.make("a.txt", "text")
    try fixture.register()
    try await withSession { session in
      let completion = Completion()
      let task = completion.task(session, try fixture.url("///a.txt"))
      task.cancel()
      task.resume()
      #expect(eventually(within: 20) { !completion.all.isEmpty })
      #expect(completion.all == [.cancelled])
    }
  }

  @Test("tasks that are cancelled at random times complete once, cancelled or whole", .timeLimit(.minutes(3)))
  func randomTimes() async throws {
    let fixture = try ResourceFixture()
    try fixture.make("big.bin", size: 4 << 20)
    try fixture.register()
    let url = try fixture.url("///big.bin")
    var random = SplitMix64(seed: seed(41))
    var cancelled = 0
    try await withSession { session in
      for round in 0..<300 {
        let completion = Completion()
        let task = completion.task(session, url)
        task.resume()
        if round % 3 > 0 { usleep(UInt32.random(in: 0..<4000, using: &random)) }
        task.cancel()
        #expect(eventually(within: 20) { !completion.all.isEmpty })
        #expect(
          completion.all.count == 1 && (completion.all[0] == nil || completion.all[0] == .cancelled),
          "\(completion.all)")
        if completion.all[0] != nil { cancelled += 1 }
      }
    }
    #expect(cancelled >= 50, "\(cancelled)")
  }

  @Test("cancelled loads release their files and threads at once", .timeLimit(.minutes(2)))
  func whileReading() async throws {
    let fixture = try ResourceFixture()
    try fixture.make("big.bin", "")
    // A sparse file takes no space but long to read.
    try (fixture.main / "big.bin").setSize(1 << 30)
    try fixture.make("small.txt", "small")
    try fixture.register()
    try await withSession { session in
      let completions = (0..<100).map { _ in Completion() }
      let url = try fixture.url("///big.bin")
      let tasks = completions.map { $0.task(session, url) }
      for task in tasks { task.resume() }
      #expect(eventually(within: 10) { Self.descriptors(of: fixture.main / "big.bin") > 0 })
      for task in tasks { task.cancel() }
      #expect(eventually(within: 20) { completions.allSatisfy { $0.all == [.cancelled] } })
      // Reading all 100 GiB would take longer.
      #expect(eventually(within: 20) { Self.descriptors(of: fixture.main / "big.bin") == 0 })
      let (data, _) = try await session.data(from: try fixture.url("///small.txt"))
      #expect(String(decoding: data, as: UTF8.self) == "small")
    }
  }

  @Test("a task that is suspended and resumed completes once with all data", .timeLimit(.minutes(3)))
  func suspended() async throws {
    let fixture = try ResourceFixture()
    try fixture.make("big.bin", size: 4 << 20)
    try fixture.register()
    let url = try fixture.url("///big.bin")
    var random = SplitMix64(seed: seed(42))
    try await withSession { session in
      for round in 0..<100 {
        let completion = Completion()
        let task = completion.task(session, url)
        task.resume()
        for _ in 0..<round % 4 {
          usleep(UInt32.random(in: 0..<2000, using: &random))
          task.suspend()
          usleep(UInt32.random(in: 0..<500, using: &random))
          task.resume()
        }
        #expect(eventually(within: 20) { !completion.all.isEmpty }, "round \(round)")
        #expect(completion.all == [nil], "round \(round)")
      }
    }
  }

  @Test("survives suspending and resuming in a tight loop until completion", .timeLimit(.minutes(3)))
  func tightLoop() async throws {
    let fixture = try ResourceFixture()
    try fixture.make("a.txt", "text")
    try fixture.register()
    let url = try fixture.url("///a.txt")
    try await withSession { session in
      for round in 0..<800 {
        let completion = Completion()
        let task = completion.task(session, url)
        task.resume()
        // Time to finish reading: a suspension restarts it.
        usleep(UInt32(round % 8) * 20)
        for _ in 0..<100_000 where completion.all.isEmpty {
          task.suspend()
          task.resume()
          if round % 3 == 0 { usleep(100) }
        }
        #expect(eventually(within: 20) { completion.all == [nil] }, "round \(round): \(completion.all)")
      }
    }
  }

  @Test("a suspended task does not complete before it is resumed", .timeLimit(.minutes(1)))
  func staysSuspended() async throws {
    let fixture = try ResourceFixture()
    try fixture.make("a.txt", "text")
    try fixture.register()
    try await withSession { session in
      let completion = Completion()
      let task = completion.task(session, try fixture.url("///a.txt"))
      task.resume()
      task.suspend()
      // The task may have completed before it was suspended.
      usleep(200_000)
      let early = completion.all.count
      usleep(200_000)
      #expect(completion.all.count == early)
      task.resume()
      #expect(eventually(within: 20) { completion.all == [nil] })
    }
  }

  @Test("a client without a task is not called after the stop", .timeLimit(.minutes(2)))
  func client() throws {
    let fixture = try ResourceFixture()
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
      let events = client.events
      usleep(100)
      #expect(client.events == events && (events.isEmpty || events == ["response", "data 1048576", "end"]))
      if !events.isEmpty { whole += 1 }
    }
    let client = Client()
    let load = ResourceURLProtocol(
      request: URLRequest(url: try fixture.url("///nothing")), cachedResponse: nil, client: client)
    load.startLoading()
    #expect(eventually(within: 20) { client.events == ["error"] })
    #expect(whole < 300)
  }

  /// The number of this process's descriptors for a file.
  private static func descriptors(of path: ByteString) -> Int {
    let folder = ByteString("/proc/self/fd")
    let names = (try? folder.names()) ?? []
    return names.filter { (try? (folder / $0).linkTarget()) == path }.count
  }
}

/// A client that records its callbacks.
private final class Client: NSObject, URLProtocolClient {
  private let recorded = Locked<[String]>([])

  var events: [String] { recorded.withLock { $0 } }

  private func record(_ event: String) { recorded.withLock { $0.append(event) } }

  func urlProtocol(
    _ urlProtocol: URLProtocol, didReceive response: URLResponse, cacheStoragePolicy: URLCache.StoragePolicy
  ) { record("response") }
  func urlProtocol(_ urlProtocol: URLProtocol, didLoad data: Data) { record("data \(data.count)") }
  func urlProtocolDidFinishLoading(_ urlProtocol: URLProtocol) { record("end") }
  func urlProtocol(_ urlProtocol: URLProtocol, didFailWithError error: any Error) { record("error") }
  func urlProtocol(
    _ urlProtocol: URLProtocol, wasRedirectedTo request: URLRequest, redirectResponse: URLResponse
  ) { record("redirect") }
  func urlProtocol(_ urlProtocol: URLProtocol, cachedResponseIsValid cachedResponse: CachedURLResponse) {
    record("cached")
  }
  func urlProtocol(_ urlProtocol: URLProtocol, didReceive challenge: URLAuthenticationChallenge) {
    record("challenge")
  }
  func urlProtocol(_ urlProtocol: URLProtocol, didCancel challenge: URLAuthenticationChallenge) {
    record("challenge cancelled")
  }
}
