import Posix
import Synchronization

/// The open files that programs poll, by the kernel's numbers, in shared memory: a successor wakes the programs, which
/// then poll it.
struct PollRecord: @unchecked Sendable {
  private static let region = SharedRegions.polls.lowerBound
  /// Beyond this, the oldest are overwritten.
  static let capacity = 4096

  private let count: UnsafeMutablePointer<UInt64>
  private let files: UnsafeMutablePointer<UInt64>
  private var known: Set<UInt64>

  init(_ memory: SharedMemory) {
    count = memory.values(of: UInt64.self, at: Self.region)
    files = memory.values(of: UInt64.self, at: Self.region + 8)
    known = []
    known = Set(all)
  }

  /// Those that are recorded.
  var all: [UInt64] { (0..<min(Int(clamping: count.pointee), Self.capacity)).map { files[$0] } }

  mutating func add(_ file: UInt64) {
    guard known.insert(file).inserted else { return }
    let place = Int(count.pointee % UInt64(Self.capacity))
    if count.pointee >= UInt64(Self.capacity) { known.remove(files[place]) }
    files[place] = file
    atomicMemoryFence(ordering: .releasing)
    count.pointee += 1
  }
}
