import Fuse
import Posix
import Testing

@testable import Volume

@Suite struct IntentLogTests {
  private static func processing<Result>(_ request: UInt64, _ body: () throws -> Result) rethrows -> Result {
    RequestThread.begin(request: request, caller: 0)
    defer { RequestThread.begin(request: 0, caller: 0) }
    return try body()
  }

  private static func identity(_ inode: UInt64) -> FileIdentity {
    FileIdentity(device: 1, inode: inode, born: TimeSpec(seconds: 3, nanoseconds: 4))
  }

  /// The kernel marks a request that it sends again.
  private static let resent: UInt64 = 1 << 63

  @Test("a successor finds what a request was about to do")
  func successor() throws {
    let memory = try SharedMemory(name: "test", size: SharedRegions.size)
    let intent = NodeIntent(
      kind: .exchange, node: NodeID(rawValue: 1 << 40),
      source: EntryKey(parent: .root, name: Array("a".utf8)),
      target: EntryKey(parent: NodeID(rawValue: 8), name: [UInt8](repeating: 0xff, count: 255)),
      moved: Self.identity(2), exchanged: Self.identity(3), keepsNumber: false)
    let log = IntentLog(memory)
    Self.processing(1000) {
      #expect(!log.hasBegun)
      log.begin(intent)
    }
    let successor = IntentLog(memory)
    Self.processing(1000 | Self.resent) {
      #expect(successor.hasBegun && successor.nodeIntent == intent)
    }
    Self.processing(1002 | Self.resent) { #expect(!successor.hasBegun) }
    // Outside of requests.
    #expect(!successor.hasBegun && successor.nodeIntents == [intent])
    Self.processing(1002) { successor.begin() }
    Self.processing(1002 | Self.resent) { #expect(successor.hasBegun && successor.nodeIntent == nil) }
  }

  @Test("that a file is copied is not what a request asks for")
  func copies() throws {
    let log = IntentLog(try SharedMemory(name: "test", size: SharedRegions.size))
    let key = EntryKey(parent: .root, name: [])
    let intent = NodeIntent(
      kind: .copyUp, node: NodeID(rawValue: 2), source: key, target: key, moved: Self.identity(1))
    Self.processing(1000) {
      log.begin(intent)
      #expect(!log.hasBegun && log.nodeIntent == nil && log.nodeIntents == [intent])
    }
  }

  @Test("a failed request leaves none")
  func withdrawal() throws {
    let log = IntentLog(try SharedMemory(name: "test", size: SharedRegions.size))
    Self.processing(1000) { log.begin() }
    // It has the same place.
    let other = 1000 + 2 * UInt64(IntentLog.capacity)
    Self.processing(other) {
      log.withdraw()
      #expect(!log.hasBegun)
    }
    Self.processing(1000) {
      #expect(log.hasBegun)
      log.withdraw()
      #expect(!log.hasBegun)
    }
  }
}
