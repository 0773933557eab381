import Glibc
import Routing
import Testing

@testable import Fuse
@testable import Volume

/// The pieces in which the kernel hands over a write(2).
@Suite struct WriteReassemblerTests {
  private static let page = Int64(sysconf(CInt(_SC_PAGESIZE)))
  private let writer = Caller(user: 1, thread: 1)

  private func take(
    _ pieces: inout WriteReassembler, _ text: String, at offset: Int64, by writer: Caller? = nil
  ) -> (WriteReassembler.Fragment, before: [UInt8]?) {
    Array(text.utf8).withUnsafeBytes { bytes in
      let (piece, before) = pieces.take(bytes, at: offset, writer ?? self.writer)
      return (piece, before?.line)
    }
  }

  private func keep(_ pieces: inout WriteReassembler, _ text: String, until end: Int64) -> Bool {
    pieces.keep(Array(text.utf8)[...], until: end, writer)
  }

  @Test("a line may go on only where a page ends, and only without its newline")
  func keeping() {
    var pieces = WriteReassembler()
    #expect(!keep(&pieces, "x:1", until: Self.page - 1))
    #expect(!keep(&pieces, "x:1\n", until: Self.page))
    #expect(!keep(&pieces, String(repeating: "x", count: 65537), until: Self.page))
    #expect(keep(&pieces, "x:1", until: Self.page))
    #expect(keep(&pieces, String(repeating: "x", count: 65536), until: 7 * Self.page))
  }

  @Test("the next piece goes on with it, the one after that with nothing")
  func goingOn() {
    var pieces = WriteReassembler()
    #expect(keep(&pieces, "x:", until: Self.page))
    let next = take(&pieces, "1\n", at: Self.page)
    #expect(next.0 == .follows(Array("x:".utf8)) && next.before == nil)
    let later = take(&pieces, "x:2\n", at: Self.page + 2)
    #expect(later.0 == .follows([]) && later.before == nil)
  }

  @Test("another's write, or one elsewhere, shows that the line was whole")
  func whole() {
    for (offset, writer) in [(Self.page, Caller(user: 1, thread: 2)), (0, writer)] {
      var pieces = WriteReassembler()
      #expect(keep(&pieces, "x:1", until: Self.page))
      let next = take(&pieces, "x:2\n", at: offset, by: writer)
      #expect(next.0 == .follows([]) && next.before == Array("x:1".utf8))
    }
  }

  @Test("so does a look by the writer, at once; another's only later")
  func looks() {
    var pieces = WriteReassembler()
    #expect(keep(&pieces, "x:1", until: Self.page))
    #expect(pieces.takeCompletedLine(Caller(user: 1, thread: 2)) == nil)
    #expect(pieces.takeCompletedLine(writer)?.line == Array("x:1".utf8))
    #expect(pieces.takeCompletedLine(writer) == nil)
    #expect(keep(&pieces, "x:1", until: Self.page))
    usleep(1_100_000)
    #expect(pieces.takeCompletedLine(Caller(user: 1, thread: 2))?.line == Array("x:1".utf8))
  }

  @Test("the rest of a refused line, written again, is refused again, once")
  func refused() {
    let error = RoutingError(.noRoute, "no")
    var pieces = WriteReassembler()
    pieces.refuse(Array("home\n".utf8)[...], writer, error)
    #expect(take(&pieces, "home\nx:2\n", at: 3).0 == .refused(error))
    #expect(take(&pieces, "home\n", at: 3).0 == .follows([]))
    pieces.refuse(Array("home\n".utf8)[...], writer, error)
    #expect(take(&pieces, "x:2\n", at: 3).0 == .follows([]))
    #expect(take(&pieces, "home\n", at: 3).0 == .follows([]))
    pieces.refuse(Array("home\n".utf8)[...], writer, error)
    #expect(take(&pieces, "home\n", at: 3, by: Caller(user: 1, thread: 2)).0 == .follows([]))
  }

  @Test("a line was lost where nothing but zeros follows, to its end or to the page's")
  func lost() {
    func wasLost(_ text: String, until end: Int64) -> Bool {
      WriteReassembler.wasZeroed(Array(text.utf8)[...], until: end)
    }
    #expect(wasLost("\0\0\0\0", until: 100) && wasLost("x:1\0\0\0", until: 100))
    #expect(wasLost("x:\0\0ome\n", until: Self.page + 4))
    #expect(!wasLost("x:1\n", until: 100) && !wasLost("x:\0\0ome\n", until: 100))
    #expect(!wasLost("x:\0\0ome\n", until: Self.page + 3))
  }
}
