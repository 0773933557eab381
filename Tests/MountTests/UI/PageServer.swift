import Glibc
import Posix
import Routing
import TestSupport
import Testing

/// A process of `bundlefs ui`, and a client that it has let in.
final class PageServer {
  let process: Child
  let address: String
  let client: PageClient
  /// What the address was answered with.
  let entrance: PageReply

  init(_ mounts: Mount..., environment: [String: String] = [:]) throws {
    let words = [try Binary.underTest(), "ui"] + mounts.map(\.point) + ["--no-open"]
    let process = try Child(Command(words, environment: environment))
    guard eventually(within: 30, { process.outputText.hasSuffix("\n") || process.status() != nil }),
      process.status() == nil
    else { throw TestFailure("no address: \(process.errorText)") }
    self.process = process
    address = String(process.outputText.dropLast())
    let rest = address.dropFirst("http://127.0.0.1:".count)
    guard address.hasPrefix("http://127.0.0.1:"), let port = UInt16(rest.prefix { $0 != "/" }) else {
      throw TestFailure("not an address: \(address)")
    }
    var client = PageClient(port: port)
    entrance = try client.get(String(rest.drop { $0 != "/" }))
    let cookie = entrance.headers["set-cookie"] ?? ""
    client.cookie = String(cookie.prefix { $0 != ";" })
    client.folder = String(cookie.suffix(65))
    self.client = client
  }

  deinit { try? process.kill() }

  /// Sends SIGINT, as Ctrl-C does.
  func interrupt() throws -> Outcome {
    process.signal(SIGINT)
    return try process.wait(timeout: 20)
  }

  func json(_ path: String, location: SourceLocation = #_sourceLocation) throws -> JSONValue {
    let reply = try client.get(path)
    #expect(reply.status == 200, "\(reply.text)", sourceLocation: location)
    return try #require(JSONValue(reply.body), sourceLocation: location)
  }

  /// The stream of the first mount's events, which has begun.
  func events() throws -> PageConnection {
    let connection = try PageConnection(client.port)
    try connection.send("GET", client.address("/api/mounts/0/events"), client.usual, [])
    #expect(try connection.read(until: ": connected").contains("text/event-stream"))
    return connection
  }

  /// Makes an edit that must succeed.
  /// - Returns: the number by which it is undone.
  func edit(_ word: String, _ json: String, location: SourceLocation = #_sourceLocation) throws -> String {
    let reply = try client.post("/api/mounts/0/\(word)", json)
    #expect(reply.status == 200, "\(word) \(json): \(reply.text)", sourceLocation: location)
    return try #require(JSONValue(reply.body)?["undo"]?.string, sourceLocation: location)
  }

  func upload(
    _ path: String, _ text: String, location: SourceLocation = #_sourceLocation
  ) throws -> String {
    let reply = try client.put("/content/0/top/\(path)", Array(text.utf8))
    #expect(reply.status == 200, "\(path): \(reply.text)", sourceLocation: location)
    return try #require(JSONValue(reply.body)?["undo"]?.string, sourceLocation: location)
  }

  func undo(_ id: String, location: SourceLocation = #_sourceLocation) throws -> String {
    try edit("undo", "{\"undo\":\"\(id)\"}", location: location)
  }
}
