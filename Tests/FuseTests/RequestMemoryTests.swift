import CFuse
import Glibc
import Testing

@testable import Fuse

@Suite struct RequestMemoryTests {
  @Test("all pages of the memory for requests are there before the first one", arguments: [false, true])
  func resident(takesWrites: Bool) throws {
    let buffer = RequestMemory.allocate(takesWrites: takesWrites)
    defer { free(buffer.mem) }
    // Later versions of libfuse allocate it.
    guard let memory = buffer.mem else { return #expect(fuse_version() >= 317) }
    let page = Int(getpagesize())
    let first = UInt(bitPattern: memory) & ~UInt(page - 1)
    let count = (takesWrites ? 1 << 20 : 64 << 10) / page
    var states = [UInt8](repeating: 0, count: count)
    let start = try #require(UnsafeMutableRawPointer(bitPattern: first))
    #expect(mincore(start, count * page, &states) == 0)
    #expect(states.allSatisfy { $0 & 1 == 1 })
  }
}
