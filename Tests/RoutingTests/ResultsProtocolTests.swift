import Testing

@testable import Routing

@Suite struct ResultsProtocolTests {
  @Test("requests and replies read back")
  func roundTrip() throws {
    for size in [ResultsProtocol.bufferSizes.small, ResultsProtocol.bufferSizes.large] {
      #expect(ResultsProtocol.isCommand(ResultsProtocol.command(size: size), size: size))
      #expect(!ResultsProtocol.isCommand(ResultsProtocol.command(size: size), size: size - 1))
      let position = ResultsProtocol.Position(7, offset: .max)
      let request = ResultsProtocol.request(position, size: size)
      #expect(request.count == size)
      #expect(request.withUnsafeBytes { ResultsProtocol.position(in: $0) } == position)
      let text = [UInt8](repeating: 1, count: ResultsProtocol.textSize(in: size))[...]
      var reply = ResultsProtocol.reply(ResultsProtocol.Page(first: 3, newest: 9, text: text))
      #expect(reply.count == size)
      let page = try #require(ResultsProtocol.page(in: reply))
      #expect(page.first == 3 && page.newest == 9 && page.text.elementsEqual(text))
      // More text than there is.
      reply.removeLast()
      #expect(ResultsProtocol.page(in: reply) == nil)
    }
  }

  @Test("short and strange buffers")
  func strange() {
    #expect([UInt8](repeating: 0, count: 15).withUnsafeBytes { ResultsProtocol.position(in: $0) } == nil)
    #expect(ResultsProtocol.page(in: [UInt8](repeating: 0, count: 23)) == nil)
    #expect(ResultsProtocol.page(in: [UInt8](repeating: 0xFF, count: 64)) == nil)
    #expect(!ResultsProtocol.isCommand(ResultsProtocol.command(size: 8), size: 8))
  }
}
