import Fuse
import Layers
import Posix

/// The spellings of names that the kernel may have cached where case does not count: those that found nothing, and those
/// that found an entry which has other spellings, too.
///
/// There is room for a limited number; the oldest one goes when another comes, and the kernel has to forget it. They
/// are recorded for a successor, which cannot find them out: one that goes stays recorded for some time, since this
/// process may die before the kernel has forgotten it.
final class KnownSpellings: Sendable {
  fileprivate struct State {
    /// By position in the ring.
    var ring: [EntryKey?]
    /// How many were ever added. Once all positions are used, less by a multiple of their number.
    var added = 0
    /// The positions of the spellings by directory, and by what they have in common.
    var positions: [NodeID: [[UInt8]: [Int]]] = [:]
  }

  private let state: Locked<State>
  private let memory: NodeMemory?

  /// - Parameter memory: the spellings of a predecessor are taken over.
  init(capacity: Int = NodeMemory.spellingCapacity, memory: NodeMemory? = nil) {
    self.memory = memory
    var state = State(ring: Array(repeating: nil, count: capacity))
    if let memory {
      state.added = memory.addedSpellings
      for position in memory.usedSpellings.clamped(to: 0..<capacity) {
        // One that went and came again may be recorded twice.
        if let key = memory.spelling(at: position), !state.contains(key) { state.insert(key, at: position) }
      }
    }
    self.state = Locked(state)
  }

  var count: Int { state.withLock { $0.ring.reduce(0) { $0 + ($1 == nil ? 0 : 1) } } }

  /// Adds a spelling, before the kernel learns of it.
  /// - Returns: those that have to go for it.
  func add(_ key: EntryKey) -> [EntryKey] {
    state.withLock { state in
      if state.contains(key) { return [] }
      let capacity = state.ring.count
      let position = state.added % capacity
      // Its record stays until its position is next. One that is at that position was restored from its record.
      let ahead = (position + capacity / Self.marginDivisor) % capacity
      let evicted = [state.remove(at: position), state.remove(at: ahead)].compactMap(\.self)
      state.added += state.added < 2 * capacity - 1 ? 1 : 1 - capacity
      state.insert(key, at: position)
      memory?.addedSpellings = state.added
      memory?.setSpelling(key, at: position)
      return evicted
    }
  }

  /// The part of the positions whose spellings are only recorded.
  private static let marginDivisor = 16

  /// The known spellings of a name.
  func spellings(of name: [UInt8], in directory: NodeID) -> [[UInt8]] {
    let key = NameFolding.key(of: name)
    return state.withLock { state in
      (state.positions[directory]?[key] ?? []).compactMap { state.ring[$0]?.name }
    }
  }

  /// The known spellings of all names of a directory.
  func all(in directory: NodeID) -> [[UInt8]] {
    state.withLock { state in
      (state.positions[directory] ?? [:]).values.flatMap { $0.compactMap { state.ring[$0]?.name } }
    }
  }

  /// Removes the spellings of a directory that the kernel has forgotten.
  func removeAll(in directory: NodeID) {
    state.withLock { state in
      for position in (state.positions[directory] ?? [:]).values.flatMap(\.self) {
        memory?.setSpelling(nil, at: position)
        _ = state.remove(at: position)
      }
    }
  }
}

extension KnownSpellings.State {
  fileprivate func contains(_ key: EntryKey) -> Bool {
    positions[key.parent]?[NameFolding.key(of: key.name)]?.contains { ring[$0] == key } ?? false
  }

  fileprivate mutating func insert(_ key: EntryKey, at position: Int) {
    ring[position] = key
    positions[key.parent, default: [:]][NameFolding.key(of: key.name), default: []].append(position)
  }

  fileprivate mutating func remove(at position: Int) -> EntryKey? {
    guard let key = ring[position] else { return nil }
    ring[position] = nil
    let common = NameFolding.key(of: key.name)
    positions[key.parent]?[common]?.removeAll { $0 == position }
    if positions[key.parent]?[common]?.isEmpty == true { positions[key.parent]?[common] = nil }
    if positions[key.parent]?.isEmpty == true { positions[key.parent] = nil }
    return key
  }
}
