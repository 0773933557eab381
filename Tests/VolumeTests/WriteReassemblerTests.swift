import Glibc
import Routing
import Testing

@testable import Fuse
@testable import Volume

@Suite struct WriteReassemblerTests {
  private static let page = Int64(sysconf(CInt(_SC_PAGESIZE)))
  private let writer = Caller(user: 1, thread: 1)

  private func take(
    _ reassembler: inout WriteReassembler, _ text: String, at offset: Int64, by writer: Caller? = nil
  ) -> (WriteReassembler.Fragment, before: [UInt8]?) {
    Array(text.utf8).withUnsafeBytes { bytes in
      let (fragment, before) = reassembler.take(bytes, at: offset, writer ?? self.writer)
      return (fragment, before?.line)
    }
  }

  private func hold(_ reassembler: inout WriteReassembler, _ text: String, endingAt end: Int64) -> Bool {
    reassembler.hold(Array(text.utf8)[...], endingAt: end, writer)
  }

  @Test("a line is held only if it ends with a page and without a newline")
  func holding() {
    var reassembler = WriteReassembler()
    #expect(!hold(&reassembler, "x:1", endingAt: Self.page - 1))
    #expect(!hold(&reassembler, "x:1\n", endingAt: Self.page))
    #expect(!hold(&reassembler, String(repeating: "x", count: 65537), endingAt: Self.page))
    #expect(hold(&reassembler, "x:1", endingAt: Self.page))
    #expect(hold(&reassembler, String(repeating: "x", count: 65536), endingAt: 7 * Self.page))
  }

  @Test("the next fragment continues the held line, the one after that continues nothing")
  func continuing() {
    var reassembler = WriteReassembler()
    #expect(hold(&reassembler, "x:", endingAt: Self.page))
    let next = take(&reassembler, "1\n", at: Self.page)
    #expect(next.0 == .continues(Array("x:".utf8)) && next.before == nil)
    let later = take(&reassembler, "x:2\n", at: Self.page + 2)
    #expect(later.0 == .continues([]) && later.before == nil)
  }

  @Test("a write by another thread or at another offset completes the held line")
  func completedByWrite() {
    for (offset, writer) in [(Self.page, Caller(user: 1, thread: 2)), (0, writer)] {
      var reassembler = WriteReassembler()
      #expect(hold(&reassembler, "x:1", endingAt: Self.page))
      let next = take(&reassembler, "x:2\n", at: offset, by: writer)
      #expect(next.0 == .continues([]) && next.before == Array("x:1".utf8))
    }
  }

  @Test("another request of the writer completes the held line at once, another thread's only after a second")
  func completedByRequest() {
    var reassembler = WriteReassembler()
    #expect(hold(&reassembler, "x:1", endingAt: Self.page))
    #expect(reassembler.takeCompletedLine(Caller(user: 1, thread: 2)) == nil)
    #expect(reassembler.takeCompletedLine(writer)?.line == Array("x:1".utf8))
    #expect(reassembler.takeCompletedLine(writer) == nil)
    #expect(hold(&reassembler, "x:1", endingAt: Self.page))
    usleep(1_100_000)
    #expect(reassembler.takeCompletedLine(Caller(user: 1, thread: 2))?.line == Array("x:1".utf8))
  }

  @Test("the rest of a rejected line is rejected once more when the writer retries it")
  func retrying() {
    let error = RoutingError(.noRoute, "no")
    var reassembler = WriteReassembler()
    reassembler.recordRejection(of: Array("home\n".utf8)[...], writer, error)
    #expect(take(&reassembler, "home\nx:2\n", at: 3).0 == .retries(error))
    #expect(take(&reassembler, "home\n", at: 3).0 == .continues([]))
    reassembler.recordRejection(of: Array("home\n".utf8)[...], writer, error)
    #expect(take(&reassembler, "x:2\n", at: 3).0 == .continues([]))
    #expect(take(&reassembler, "home\n", at: 3).0 == .continues([]))
    reassembler.recordRejection(of: Array("home\n".utf8)[...], writer, error)
    #expect(take(&reassembler, "home\n", at: 3, by: Caller(user: 1, thread: 2)).0 == .continues([]))
  }

  @Test("a line was zeroed where only zeros follow, up to its end or the page's")
  func zeroed() {
    func wasZeroed(_ text: String, endingAt end: Int64) -> Bool {
      WriteReassembler.wasZeroed(Array(text.utf8)[...], endingAt: end)
    }
    #expect(wasZeroed("\0\0\0\0", endingAt: 100) && wasZeroed("x:1\0\0\0", endingAt: 100))
    #expect(wasZeroed("x:\0\0ome\n", endingAt: Self.page + 4))
    #expect(!wasZeroed("x:1\n", endingAt: 100) && !wasZeroed("x:\0\0ome\n", endingAt: 100))
    #expect(!wasZeroed("x:\0\0ome\n", endingAt: Self.page + 3))
  }
}
