import Layers
import Posix
import Routing
import WebServer

/// The tree as JSON, or a part of it, written while it is walked: as `tree --json` prints it, but with the entries first.
final class UITreeStream: WebStream {
  private struct State: ~Copyable {
    var walker: ComparisonWalker
    /// The entry that the walk begins at, until it is written.
    var first: ComparisonWalker.Entry?
    var text: [UInt8] = Array("{\"entries\":[".utf8)
    var hasEntry = false
    var hasEnded = false
  }

  /// The bytes of a part, at least.
  private static let part = 16 << 10

  private let state: Locked<State>

  /// - Parameter start: an entry, which is written with what is beneath it; empty for what is beneath the root.
  /// - Throws: if the start cannot be compared.
  init(of mountPoint: MountPoint, from start: [[UInt8]]) throws(Errno) {
    var walker = try ComparisonWalker(
      of: mountPoint, from: start, includesUnchanged: true, showsProgress: false)
    let first = try Self.begin(&walker, at: start)
    state = Locked(State(walker: walker, first: first))
  }

  /// - Returns: the entry at the start; nil if no layer has it.
  private static func begin(
    _ walker: inout ComparisonWalker, at start: [[UInt8]]
  ) throws(Errno) -> ComparisonWalker.Entry? {
    do throws(Errno) {
      let name = start.isEmpty ? nil : try walker.name(at: start)
      if start.isEmpty || name?.kind == .directory { try walker.begin() }
      return name.map { ComparisonWalker.Entry(path: start, name: $0, isLast: []) }
    } catch {
      // It, or a directory above it, is hidden or was removed.
      if !start.isEmpty, error == .noSuchFileOrDirectory || error == .notDirectory { return nil }
      throw error
    }
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
    if let entry = state.first.take() ?? state.walker.next() {
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
