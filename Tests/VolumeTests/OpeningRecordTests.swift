import Fuse
import Posix
import Synchronization
import Testing

@testable import Volume

/// What a successor knows of the files that are open with passthrough.
@Suite struct OpeningRecordTests {
  private typealias Counts = OpeningRecord.Counts

  private static let first = NodeID(rawValue: 7)
  private static let second = NodeID(rawValue: 9)

  private func memory() throws -> SharedMemory {
    try SharedMemory(name: "openings", size: SharedRegions.openings.upperBound)
  }

  private func request(
    _ number: UInt64, _ node: NodeID = Self.first, writes: Bool = false
  ) -> Passthrough.Request {
    Passthrough.Request(node: node, number: number, writes: writes)
  }

  /// Records a node that is open with a backing file.
  private func record(_ node: NodeID, _ file: Int32?, _ counts: Counts, _ record: inout OpeningRecord) throws
    -> Int
  {
    let place = record.add(node)
    let slot = try #require(place)
    record.setFile(file.map { BackingFile(rawValue: $0) }, at: slot)
    record.set(counts, at: slot, for: nil)
    return slot
  }

  @Test("a successor knows what is open, and nothing that was closed")
  func successor() throws {
    let memory = try memory()
    var record = OpeningRecord(memory)
    let closed = try self.record(Self.first, 1, Counts(all: 1), &record)
    let kept = try self.record(Self.second, nil, Counts(all: 1), &record)
    record.set(Counts(all: 3, writers: 2, mayBeMapped: true), at: kept, for: nil)
    record.set(Counts(), at: closed, for: nil)
    var successor = OpeningRecord(memory)
    #expect(successor.all.map(\.node) == [Self.second])
    #expect(successor.all.map(\.counts) == [Counts(all: 3, writers: 2, mayBeMapped: true)])
    #expect(successor.all.map(\.file) == [nil])
    // A free entry is used again.
    let again = try self.record(Self.first, 5, Counts(all: 1), &successor)
    #expect(again == closed)
    #expect(OpeningRecord(memory).all.map(\.file) == [BackingFile(rawValue: 5), nil])
  }

  @Test("what has no room is open all the same")
  func full() throws {
    let memory = try memory()
    var record = OpeningRecord(memory)
    for number in 0..<OpeningRecord.capacity {
      let slot = try self.record(NodeID(rawValue: UInt64(number + 1)), nil, Counts(all: 1), &record)
      #expect(slot == number)
    }
    let excess = record.add(Self.first)
    #expect(excess == nil)
    #expect(OpeningRecord(memory).all.count == OpeningRecord.capacity)
    let passthrough = Passthrough(BackingFilesStub(), smallest: 0, memory: memory)
    let request = request(1, NodeID(rawValue: 1 << 40))
    #expect(try passthrough.open(request, .cached) == .cached)
    passthrough.close(self.request(2, request.node))
    #expect(!passthrough.knows(request.node))
  }

  @Test("a successor opens a node with the same backing file, and unregisters it at the last close")
  func sameFile() throws {
    let memory = try memory()
    var record = OpeningRecord(memory)
    _ = try self.record(Self.first, 4, Counts(all: 1), &record)
    let kernel = BackingFilesStub()
    let passthrough = Passthrough(kernel, smallest: 0, memory: memory)
    #expect(try passthrough.join(request(1), .cached) == .passed(BackingFile(rawValue: 4)))
    passthrough.close(request(2))
    #expect(kernel.unregistered == [])
    passthrough.close(request(3))
    #expect(kernel.unregistered == [BackingFile(rawValue: 4)])
    #expect(OpeningRecord(memory).all.isEmpty)
  }

  @Test("a request that is sent again after a death is counted once, wherever the worker died")
  func resent() throws {
    let memory = try memory()
    var record = OpeningRecord(memory)
    _ = try self.record(Self.first, 4, Counts(all: 1), &record)
    let kernel = BackingFilesStub()
    var passthrough = Passthrough(kernel, smallest: 0, memory: memory)
    // It dies before the reply, and after the reply.
    for isReplied in [false, true] {
      #expect(try passthrough.open(request(10, writes: true), .cached) == .passed(BackingFile(rawValue: 4)))
      passthrough = Passthrough(kernel, smallest: 0, memory: memory)
      if !isReplied {
        #expect(try passthrough.open(request(10, writes: true), .cached) == .passed(BackingFile(rawValue: 4)))
        passthrough.finish(request(10))
      }
      #expect(OpeningRecord(memory).all.map(\.counts.all) == [2])
      #expect(OpeningRecord(memory).all.map(\.counts.writers) == [1])
      #expect(passthrough.mayWrite(to: Self.first))
      passthrough.close(request(11, writes: true))
      passthrough = Passthrough(kernel, smallest: 0, memory: memory)
      if !isReplied {
        passthrough.close(request(11, writes: true))
        passthrough.finish(request(11))
      }
      #expect(OpeningRecord(memory).all.map(\.counts) == [Counts(all: 1, mayBeMapped: true)])
    }
    passthrough.close(request(12))
    // The kernel answers ENOENT to the second time.
    passthrough = Passthrough(kernel, smallest: 0, memory: memory)
    passthrough.close(request(12))
    #expect(kernel.unregistered == [BackingFile(rawValue: 4), BackingFile(rawValue: 4)])
    #expect(OpeningRecord(memory).all.map(\.counts) == [Counts(mayBeMapped: true)])
  }

  @Test("what was about to be counted when a worker died is counted by its successor")
  func interrupted() throws {
    let memory = try memory()
    var record = OpeningRecord(memory)
    let slot = try self.record(Self.first, 4, Counts(all: 1), &record)
    record.set(Counts(all: 2), at: slot, for: 10)
    // As a death between the two steps leaves it.
    record.rewind(10, to: Counts(all: 1), at: slot)
    #expect(OpeningRecord(memory).all.map(\.counts.all) == [2])
    #expect(OpeningRecord(memory).isCounted(10))
  }

  @Test("FORGET ends what was counted too often")
  func forgotten() throws {
    let memory = try memory()
    var record = OpeningRecord(memory)
    _ = try self.record(Self.first, 4, Counts(all: 3, writers: 1, mayBeMapped: true), &record)
    let kernel = BackingFilesStub()
    let passthrough = Passthrough(kernel, smallest: 0, memory: memory)
    passthrough.forget(Self.first)
    #expect(kernel.unregistered == [BackingFile(rawValue: 4)])
    #expect(!passthrough.knows(Self.first) && !passthrough.mayWrite(to: Self.first))
    #expect(OpeningRecord(memory).all.isEmpty)
  }

  @Test("more requests than have room are counted, if not remembered")
  func manyRequests() throws {
    let memory = try memory()
    let passthrough = Passthrough(BackingFilesStub(), smallest: 0, memory: memory)
    for number in 1...2000 as ClosedRange<UInt64> {
      #expect(try passthrough.open(request(number), .cached) == .cached)
    }
    #expect(OpeningRecord(memory).all.map(\.counts.all) == [2000])
    for number in 2001...4000 as ClosedRange<UInt64> { passthrough.close(request(number)) }
    #expect(OpeningRecord(memory).all.isEmpty)
  }
}

private final class BackingFilesStub: BackingFiles {
  private let closed = Mutex<[BackingFile]>([])
  var unregistered: [BackingFile] { closed.withLock { $0 } }
  var passthroughObstacle: String? { nil }

  func register(_ file: borrowing Descriptor) throws(Errno) -> BackingFile { BackingFile(rawValue: 1) }

  func unregister(_ file: BackingFile) { closed.withLock { $0.append(file) } }
}
