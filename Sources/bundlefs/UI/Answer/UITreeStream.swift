import Posix
import Routing
import WebServer

/// The whole tree as JSON, written while it is walked: as `tree --json` prints it, but with the entries first.
final class UITreeStream: WebStream {
  private struct State: ~Copyable {
    var walker: ComparisonWalker
    var text: [UInt8] = Array("{\"entries\":[".utf8)
    var hasEntry = false
    var hasEnded = false
  }

  /// The bytes of a part, at least.
  private static let part = 16 << 10

  private let state: Locked<State>

  /// - Throws: if the root cannot be compared.
  init(of mountPoint: MountPoint) throws(Errno) {
    var walker = try ComparisonWalker(of: mountPoint, from: [], includesUnchanged: true, showsProgress: false)
    try walker.begin()
    state = Locked(State(walker: walker))
  }

  func read(into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64) -> Int? {
    state.withLock { state in
      while state.text.count < Self.part, !state.hasEnded { Self.add(to: &state) }
      let part = state.text.prefix(buffer.count)
      buffer.copyBytes(from: part)
      state.text.removeFirst(part.count)
      return part.count
    }
  }

  private static func add(to state: inout State) {
    if let entry = state.walker.next() {
      state.text += (state.hasEntry ? ",\n  " : "\n  ").utf8
      state.text += ComparisonJSON.member(entry, state.walker.layers).bytes
      state.hasEntry = true
    } else {
      state.text += "\n],".utf8
      state.text += ComparisonJSON.summary(state.walker).utf8.dropFirst()
      state.hasEnded = true
    }
  }
}
