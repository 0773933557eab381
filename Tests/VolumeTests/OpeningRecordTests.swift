import Fuse
import Posix
import Synchronization
import Testing

@testable import Volume

/// What a successor knows of the files that are open with passthrough.
@Suite struct OpeningRecordTests {
  private static let first = NodeID(rawValue: 7)
  private static let second = NodeID(rawValue: 9)

  private func memory() throws -> SharedMemory {
    try SharedMemory(name: "openings", size: SharedRegions.openings.upperBound)
  }

  @Test("a successor knows what is open, and nothing that was closed")
  func successor() throws {
    let memory = try memory()
    var record = OpeningRecord(memory)
    let (closed, kept) = (record.add(Self.first, BackingFile(rawValue: 1)), record.add(Self.second, nil))
    record.setCount(3, at: try #require(kept))
    record.setCount(0, at: try #require(closed))
    var successor = OpeningRecord(memory)
    #expect(successor.all.map(\.node) == [Self.second])
    #expect(successor.all.map(\.count) == [3] && successor.all.map(\.file) == [nil])
    // A free entry is used again.
    let again = successor.add(Self.first, BackingFile(rawValue: 5))
    #expect(again == closed)
    #expect(OpeningRecord(memory).all.map(\.file) == [BackingFile(rawValue: 5), nil])
  }

  @Test("what has no room is open all the same")
  func full() throws {
    let memory = try memory()
    var record = OpeningRecord(memory)
    for number in 0..<OpeningRecord.capacity {
      let slot = record.add(NodeID(rawValue: UInt64(number + 1)), nil)
      #expect(slot == number)
    }
    let excess = record.add(Self.first, nil)
    #expect(excess == nil)
    #expect(OpeningRecord(memory).all.count == OpeningRecord.capacity)
    let kernel = BackingFilesStub()
    let passthrough = Passthrough(kernel, smallest: 0, memory: memory)
    #expect(passthrough.open(NodeID(rawValue: 1 << 40), nil) == nil)
    passthrough.close(NodeID(rawValue: 1 << 40))
    #expect(passthrough.join(NodeID(rawValue: 1 << 40)) == nil)
  }

  @Test("a successor opens a node with the same backing file, and unregisters it at the last close")
  func sameFile() throws {
    let memory = try memory()
    var record = OpeningRecord(memory)
    _ = record.add(Self.first, BackingFile(rawValue: 4))
    let kernel = BackingFilesStub()
    let passthrough = Passthrough(kernel, smallest: 0, memory: memory)
    #expect(passthrough.join(Self.first) == .some(BackingFile(rawValue: 4)))
    passthrough.close(Self.first)
    #expect(kernel.unregistered == [])
    passthrough.close(Self.first)
    #expect(kernel.unregistered == [BackingFile(rawValue: 4)])
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
