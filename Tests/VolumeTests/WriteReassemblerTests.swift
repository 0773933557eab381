import Glibc
import Routing
import Testing

@testable import Fuse
@testable import Volume

@Suite struct WriteReassemblerTests {
  private static let page = Int64(sysconf(CInt(_SC_PAGESIZE)))
  private let writer = Caller(user: 1, thread: 1)
  /// A thread of another process: one of this process, whose number 1 is not a thread of it.
  private let other = Caller(user: 1, thread: getpid())

  private func take(
    _ reassembler: inout WriteReassembler, _ text: String, at offset: Int64, appends: Bool = false,
    by writer: Caller? = nil
  ) -> (kind: WriteReassembler.Piece.Kind, completed: [[UInt8]], size: Int) {
    Array(text.utf8).withUnsafeBytes { bytes in
      let piece = reassembler.take(bytes, at: offset, appends: appends, writer ?? self.writer)
      return (piece.kind, piece.completed.map(\.line), piece.sizeOfWrite)
    }
  }

  private func hold(
    _ reassembler: inout WriteReassembler, _ text: String, endingAt end: Int64, size: Int = 3,
    sizeOfWrite: Int? = nil, by writer: Caller? = nil
  ) -> WriteReassembler.Hold {
    reassembler.hold(
      Array(text.utf8)[...], endingAt: end, size: size, sizeOfWrite: sizeOfWrite ?? size,
      writer ?? self.writer)
  }

  @Test("a line is held only where a page or a buffer ends, and without a newline")
  func holding() {
    var reassembler = WriteReassembler()
    #expect(hold(&reassembler, "x:1", endingAt: Self.page - 1) == .complete)
    #expect(hold(&reassembler, "x:1\n", endingAt: Self.page) == .complete)
    #expect(hold(&reassembler, "x:1\n", endingAt: 7, size: 512) == .complete)
    #expect(hold(&reassembler, String(repeating: "x", count: 65537), endingAt: Self.page) == .complete)
    #expect(hold(&reassembler, "x:1", endingAt: Self.page) == .fragment)
    #expect(
      hold(&reassembler, String(repeating: "x", count: 65536), endingAt: 7 * Self.page) == .fragment)
    #expect(hold(&reassembler, "x:1", endingAt: 1024) == .fragment)
    for size in [512, 4096, 8192, 2038] {
      #expect(hold(&reassembler, "x:1", endingAt: 7, size: size) == .buffer)
      #expect(hold(&reassembler, "x:1", endingAt: 7, size: 5, sizeOfWrite: size) == .buffer)
    }
  }

  @Test("the next fragment continues the held line, the one after that continues nothing")
  func continuing() {
    var reassembler = WriteReassembler()
    #expect(hold(&reassembler, "x:", endingAt: Self.page) == .fragment)
    let next = take(&reassembler, "1\n", at: Self.page)
    #expect(next.kind == .continues(Array("x:".utf8)) && next.completed.isEmpty)
    let later = take(&reassembler, "x:2\n", at: Self.page + 2)
    #expect(later.kind == .continues([]) && later.completed.isEmpty)
  }

  @Test("a write by another thread or at another offset completes the held fragment")
  func completedByWrite() {
    for (offset, writer) in [(Self.page, Caller(user: 1, thread: 2)), (0, writer)] {
      var reassembler = WriteReassembler()
      #expect(hold(&reassembler, "x:1", endingAt: Self.page) == .fragment)
      let next = take(&reassembler, "x:2\n", at: offset, by: writer)
      #expect(next.kind == .continues([]) && next.completed == [Array("x:1".utf8)])
    }
  }

  @Test("a buffer is continued at its end, or anywhere if the file is open with O_APPEND")
  func continuingBuffers() {
    for (offset, appends, continues) in [(7, false, true), (0, false, false), (900, true, true)] {
      var reassembler = WriteReassembler()
      #expect(hold(&reassembler, "x:1", endingAt: 7, size: 512) == .buffer)
      let next = take(&reassembler, "2\n", at: Int64(offset), appends: appends)
      #expect(next.kind == .continues(continues ? Array("x:1".utf8) : []))
      #expect(next.completed == (continues ? [] : [Array("x:1".utf8)]))
    }
  }

  @Test("programs that write at the same time complete and continue no buffer of each other")
  func manyBuffers() {
    var reassembler = WriteReassembler()
    #expect(hold(&reassembler, "x:1", endingAt: 512, size: 512) == .buffer)
    let next = take(&reassembler, "y:2", at: 512, appends: true, by: other)
    #expect(next.kind == .continues([]) && next.completed.isEmpty)
    #expect(hold(&reassembler, "y:2", endingAt: 1024, size: 512, by: other) == .buffer)
    #expect(reassembler.buffering == [writer, other])
    #expect(take(&reassembler, "1\n", at: 512).kind == .continues(Array("x:1".utf8)))
    #expect(reassembler.buffering == [other])
    #expect(reassembler.takeBuffer(of: writer) == nil)
    #expect(reassembler.takeBuffer(of: other)?.line == Array("y:2".utf8))
    #expect(!reassembler.holdsBuffers)
  }

  @Test("only so many lines are held")
  func capacity() {
    var reassembler = WriteReassembler()
    for thread in 1...WriteReassembler.capacity {
      let writer = Caller(user: 1, thread: Int32(thread))
      #expect(hold(&reassembler, "x:1", endingAt: 512, size: 512, by: writer) == .buffer)
    }
    #expect(hold(&reassembler, "x:1", endingAt: 512, size: 512, by: Caller(user: 1, thread: 99)) == .full)
  }

  @Test("fragments at the end of a page count as one write")
  func sizes() {
    var reassembler = WriteReassembler()
    #expect(take(&reassembler, "12345\n", at: Self.page - 6).size == 6)
    #expect(take(&reassembler, "x:1", at: Self.page).size == 9)
    #expect(take(&reassembler, "x:1", at: Self.page + 3).size == 3)
    #expect(take(&reassembler, "12345\n", at: Self.page - 6).size == 6)
    #expect(take(&reassembler, "x:1", at: Self.page, by: other).size == 3)
  }

  @Test("another request of the writer completes a fragment at once, another thread's only after a second")
  func completedByRequest() {
    var reassembler = WriteReassembler()
    #expect(hold(&reassembler, "x:1", endingAt: Self.page) == .fragment)
    #expect(reassembler.takeCompletedFragment(Caller(user: 1, thread: 2)) == nil)
    #expect(reassembler.takeCompletedFragment(writer)?.line == Array("x:1".utf8))
    #expect(reassembler.takeCompletedFragment(writer) == nil)
    #expect(hold(&reassembler, "x:1", endingAt: Self.page) == .fragment)
    usleep(1_100_000)
    #expect(reassembler.takeCompletedFragment(Caller(user: 1, thread: 2))?.line == Array("x:1".utf8))
    #expect(hold(&reassembler, "x:1", endingAt: Self.page, size: 512) == .buffer)
    #expect(reassembler.takeCompletedFragment(writer) == nil)
  }

  @Test("the rest of a rejected line is rejected once more when the writer retries it")
  func retrying() {
    let error = RoutingError(.noRoute, "no")
    var reassembler = WriteReassembler()
    reassembler.recordRejection(of: Array("home\n".utf8)[...], writer, error)
    #expect(take(&reassembler, "home\nx:2\n", at: 3).kind == .retries(error))
    #expect(take(&reassembler, "home\n", at: 3).kind == .continues([]))
    reassembler.recordRejection(of: Array("home\n".utf8)[...], writer, error)
    #expect(take(&reassembler, "x:2\n", at: 3).kind == .continues([]))
    #expect(take(&reassembler, "home\n", at: 3).kind == .continues([]))
    reassembler.recordRejection(of: Array("home\n".utf8)[...], writer, error)
    #expect(take(&reassembler, "home\n", at: 3, by: Caller(user: 1, thread: 2)).kind == .continues([]))
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
