import Foundation
import FoundationNetworking
import Posix
import TestSupport
import Testing

@testable import BundleResources

/// Loading through URLSession, without a mount.
@Suite struct URLSessionTests {
  @Test("loads data, MIME type, length and encoding", .timeLimit(.minutes(1)))
  func response() async throws {
    let fixture = try ResourceFixture()
    try fixture.make("page.html", "<p>Grüße</p>")
    try fixture.make("empty.png", "")
    try fixture.register()
    try await withSession { session in
      let url = try fixture.url("///page.html")
      let (data, response) = try await session.data(from: url)
      #expect(String(decoding: data, as: UTF8.self) == "<p>Grüße</p>")
      #expect(response.mimeType == "text/html" && response.textEncodingName == "utf-8")
      #expect(response.expectedContentLength == 14 && response.url == url)
      let (empty, image) = try await session.data(from: try fixture.url("///empty.png"))
      #expect(empty.isEmpty && image.mimeType == "image/png" && image.textEncodingName == nil)
      #expect(image.expectedContentLength == 0)
    }
  }

  @Test("a scheme is case-insensitive and works in the shared session", .timeLimit(.minutes(1)))
  func shared() async throws {
    let fixture = try ResourceFixture()
    try fixture.make("a.txt", "text")
    try ResourceURLProtocol.register(try fixture.source(), scheme: fixture.scheme.uppercased())
    #expect(ResourceURLProtocol.registeredSchemes.contains(fixture.scheme))
    let url = try #require(URL(string: "\(fixture.scheme.capitalized):///a.txt"))
    let (data, _) = try await URLSession.shared.data(from: url)
    #expect(String(decoding: data, as: UTF8.self) == "text")
  }

  @Test("failed loads throw URLError", .timeLimit(.minutes(1)))
  func errors() async throws {
    let fixture = try ResourceFixture()
    try fixture.make("folder/a.txt", "a")
    try fixture.register()
    let cases: [(String, URLError.Code)] = [
      ("///nothing.txt", .fileDoesNotExist), ("///folder", .fileIsDirectory), ("//host/a.txt", .badURL),
      ("///a%00b", .badURL), ("///folder/../folder/a.txt", .badURL), ("///%2E%2e/a.txt", .badURL),
    ]
    try await withSession { session in
      for (rest, expected) in cases {
        let url = try fixture.url(rest)
        #expect(await code { _ = try await session.data(from: url) } == expected, "\(rest)")
      }
      let unknown = try #require(URL(string: "x\(fixture.scheme):///folder/a.txt"))
      #expect(await code { _ = try await session.data(from: unknown) } == .unsupportedURL)
    }
  }

  @Test("HEAD returns no data, other methods do", .timeLimit(.minutes(1)))
  func methods() async throws {
    let fixture = try ResourceFixture()
    try fixture.make("a.txt", "text")
    try fixture.register()
    try await withSession { session in
      for (method, content) in [("HEAD", ""), ("GET", "text"), ("POST", "text")] {
        var request = URLRequest(url: try fixture.url("///a.txt"))
        request.httpMethod = method
        let (data, response) = try await session.data(for: request)
        #expect(String(decoding: data, as: UTF8.self) == content, "\(method)")
        #expect(response.expectedContentLength == 4 && response.mimeType == "text/plain", "\(method)")
      }
    }
  }

  @Test("a delegate receives the response, the data in one piece and the completion", .timeLimit(.minutes(1)))
  func delegate() async throws {
    let fixture = try ResourceFixture()
    try fixture.make("big.bin", size: 3 << 20)
    try fixture.register()
    let recorder = Recorder()
    let session = URLSession(
      configuration: ResourceURLProtocol.configuration, delegate: recorder, delegateQueue: nil)
    defer { session.finishTasksAndInvalidate() }
    session.dataTask(with: try fixture.url("///big.bin")).resume()
    #expect(eventually(within: 20) { recorder.events.last == "end" })
    #expect(recorder.events == ["response 3145728", "data 3145728", "end"])
    session.dataTask(with: try fixture.url("///nothing")).resume()
    #expect(eventually(within: 20) { recorder.events.count > 3 })
    #expect(recorder.events.dropFirst(3) == ["error \(URLError.Code.fileDoesNotExist.rawValue)"])
  }

  @Test("a download task fails instead of crashing the process", .timeLimit(.minutes(1)))
  func download() async throws {
    let fixture = try ResourceFixture()
    try fixture.make("a.txt", "text")
    try fixture.register()
    let url = try fixture.url("///a.txt")
    try await withSession { session in
      let failure: URLError.Code? = await withCheckedContinuation { continuation in
        session.downloadTask(with: url) { _, _, error in
          continuation.resume(returning: (error as? URLError)?.code)
        }.resume()
      }
      #expect(failure == .unsupportedURL)
    }
  }

  @Test("each scheme has its own bundle until it is unregistered", .timeLimit(.minutes(1)))
  func schemes() async throws {
    let (one, two) = (try ResourceFixture(), try ResourceFixture())
    try one.make("a.txt", "one")
    try two.make("a.txt", "two")
    try one.register()
    try two.register()
    try await withSession { session in
      for _ in 0..<5 {
        for (fixture, content) in [(one, "one"), (two, "two")] {
          let (data, _) = try await session.data(from: try fixture.url("///a.txt"))
          #expect(String(decoding: data, as: UTF8.self) == content)
        }
      }
      #expect(ResourceURLProtocol.unregister(scheme: one.scheme))
      #expect(!ResourceURLProtocol.unregister(scheme: one.scheme))
      let url = try one.url("///a.txt")
      #expect(await code { _ = try await session.data(from: url) } == .unsupportedURL)
      let (data, _) = try await session.data(from: try two.url("///a.txt"))
      #expect(String(decoding: data, as: UTF8.self) == "two")
      // The scheme can be registered for another source.
      try ResourceURLProtocol.register(try two.source(), scheme: one.scheme)
      let (other, _) = try await session.data(from: url)
      #expect(String(decoding: other, as: UTF8.self) == "two")
    }
  }

  @Test("an override that is edited between two loads is visible in the second", .timeLimit(.minutes(1)))
  func live() async throws {
    let fixture = try ResourceFixture()
    try fixture.make("a.txt", "main")
    try fixture.register()
    let url = try fixture.url("///a.txt")
    try await withSession { session in
      var seen: [String] = []
      let load = { seen.append(String(decoding: try await session.data(from: url).0, as: UTF8.self)) }
      try await load()
      try fixture.override("a.txt", "override")
      try await load()
      try (fixture.substitution / "a.txt").write("in place")
      try await load()
      try (fixture.substitution / "a.txt").remove()
      try await load()
      #expect(seen == ["main", "override", "in place", "main"])
    }
  }

  @Test("completes 1,000 concurrent loads on at most eight threads", .timeLimit(.minutes(3)))
  func concurrent() async throws {
    let fixture = try ResourceFixture()
    for number in 0..<50 { try fixture.make(ByteString("file\(number).txt"), size: 1000 * number) }
    try fixture.register()
    try await withSession { session in
      let wrong = try await withThrowingTaskGroup(of: Bool.self) { group in
        for number in 0..<1000 {
          let url = try fixture.url(number % 10 == 9 ? "///none\(number)" : "///file\(number % 50).txt")
          group.addTask {
            do {
              let (data, response) = try await session.data(from: url)
              let expected = ResourceFixture.bytes(1000 * (number % 50))
              return number % 10 == 9 || [UInt8](data) != expected
                || response.expectedContentLength != Int64(expected.count)
            } catch {
              return number % 10 != 9 || (error as? URLError)?.code != .fileDoesNotExist
            }
          }
        }
        var (wrong, most) = (0, 0)
        for try await isWrong in group {
          if isWrong { wrong += 1 }
          // A thread that has left the pool may not have exited yet.
          if Self.loaderThreads() > 8, !eventually(within: 20, { Self.loaderThreads() <= 8 }) {
            most = max(most, Self.loaderThreads())
          }
        }
        #expect(most <= 8, "\(most) threads")
        return wrong
      }
      #expect(wrong == 0)
    }
    // The threads exit once no test is loading.
    #expect(eventually(within: 60) { Self.loaderThreads() == 0 })
  }

  /// The number of this process's loader threads.
  private static func loaderThreads() -> Int {
    let tasks = ByteString("/proc/self/task")
    let names = (try? tasks.names()) ?? []
    return names.filter { (try? (tasks / $0 / "comm").readText()) == "resources\n" }.count
  }
}

/// Records the callbacks of a session's delegate, in order.
final class Recorder: NSObject, URLSessionDataDelegate {
  private let recorded = Locked<[String]>([])

  var events: [String] { recorded.withLock { $0 } }

  private func record(_ event: String) { recorded.withLock { $0.append(event) } }

  func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
    completionHandler: @escaping (URLSession.ResponseDisposition) -> Void
  ) {
    record("response \(response.expectedContentLength)")
    completionHandler(.allow)
  }

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    record("data \(data.count)")
  }

  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    record(error.map { "error \(($0 as? URLError)?.code.rawValue ?? 0)" } ?? "end")
  }
}
