import Testing

@testable import WebServer

/// What the page of `bundlefs ui` is sent of events.
@Suite struct EventStreamTests {
  private func read(_ stream: EventStream, _ count: Int) -> String {
    var bytes = [UInt8](repeating: 0, count: count)
    let read = bytes.withUnsafeMutableBytes { stream.read(into: $0, at: 0) }
    return String(decoding: bytes.prefix(read ?? 0), as: UTF8.self)
  }

  @Test("an overflow after a part of an event is an event of its own", .timeLimit(.minutes(1)))
  func overflow() throws {
    let stream = try EventStream {}
    stream.send("change", "{\"path\":\"a\"}")
    let part = ": connected\n\nevent: change\ndata: {"
    #expect(read(stream, part.utf8.count) == part)
    for _ in 0..<40 { stream.send("change", String(repeating: "x", count: 10_000)) }
    stream.close()
    var rest = ""
    while case let text = read(stream, 64 << 10), !text.isEmpty { rest += text }
    #expect((part + rest).components(of: "\n\n").suffix(2) == ["event: overflow\ndata: {}", ""])
  }
}

extension String {
  /// The parts between separators.
  fileprivate func components(of separator: String) -> [String] {
    var (parts, rest) = ([""], self[...])
    while !rest.isEmpty {
      if rest.hasPrefix(separator) {
        parts.append("")
        rest = rest.dropFirst(separator.count)
      } else {
        parts[parts.count - 1].append(rest.removeFirst())
      }
    }
    return parts
  }
}
