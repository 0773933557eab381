import Testing

@testable import WebServer

/// Which requests the server of `bundlefs ui` lets pass.
@Suite struct WebGateTests {
  private func request(_ path: String..., host: String, cookie: String = "", token: String? = nil)
    -> WebRequest
  {
    WebRequest(
      method: .get, path: path.map { Array($0.utf8) },
      parameter: { $0 == "token" ? token.map { Array($0.utf8) } : nil },
      header: { ["Host": host, "Cookie": cookie][$0] })
  }

  /// Returns the cookie and the secret folder.
  private func enter(_ gate: WebGate, host: String, _ token: String) throws -> (String, String)? {
    let passage = try? gate.passage(of: request(host: host, token: token))
    guard case .answer(let response) = passage else { return nil }
    let value = try #require(response.headers.first { $0.name == "Set-Cookie" }?.value)
    return (String(value.prefix { $0 != ";" }), String(value.suffix(64)))
  }

  @Test("the token lets one browser in, and a wrong one uses nothing up")
  func token() throws {
    let gate = WebGate(port: 1234)
    let host = "127.0.0.1:1234"
    #expect(try enter(gate, host: host, gate.token.dropLast() + "g") == nil)
    let (cookie, folder) = try #require(try enter(gate, host: host, gate.token))
    #expect(try enter(gate, host: host, gate.token) == nil)
    let inner = try gate.passage(of: request(folder, "a", "b", host: host, cookie: cookie))
    guard case .request(let passed) = inner else { return #expect(Bool(false)) }
    #expect(passed.path == [Array("a".utf8), Array("b".utf8)])
    for (path, sent) in [("a", cookie), (folder, ""), (folder, "bundlefs-1234=\(folder)")] {
      #expect(throws: WebError.self) { try gate.passage(of: request(path, host: host, cookie: sent)) }
    }
  }

  @Test("the host has no port only where that is the port of the scheme", arguments: [80, 1234] as [UInt16])
  func hosts(port: UInt16) throws {
    for name in ["127.0.0.1", "localhost"] {
      for (host, isServed) in [("\(name):\(port)", true), (name, port == 80), ("\(name):81", false)] {
        let gate = WebGate(port: port)
        #expect(try (enter(gate, host: host, gate.token) != nil) == isServed, "\(host)")
      }
    }
  }
}
