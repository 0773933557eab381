import Fuse
import Posix

/// The missing names that the kernel has cached for a limited time, by directory. No layer says which those are.
struct NegativeReplies {
  static let capacity = 16_384

  private var names: [NodeID: [[UInt8]: TimeSpec]] = [:]
  private(set) var count = 0
  /// When the next search for outdated names is worth its time.
  private var nextSearch = TimeSpec(seconds: 0, nanoseconds: 0)

  /// Records a name.
  /// - Parameter end: when the kernel has dropped it for certain.
  /// - Returns: false if there are too many names; then the kernel must not cache it.
  mutating func add(_ name: [UInt8], in directory: NodeID, until end: TimeSpec, now: TimeSpec) -> Bool {
    if count >= Self.capacity { removeOutdated(now) }
    if count >= Self.capacity { return false }
    if names[directory, default: [:]].updateValue(end, forKey: name) == nil { count += 1 }
    return true
  }

  /// Removes the names of a directory and returns them.
  mutating func remove(_ directory: NodeID) -> [[UInt8]] {
    guard let removed = names.removeValue(forKey: directory) else { return [] }
    count -= removed.count
    return Array(removed.keys)
  }

  private mutating func removeOutdated(_ now: TimeSpec) {
    if now < nextSearch { return }
    nextSearch = now.advanced(byMilliseconds: 1000)
    names = names.compactMapValues { names in
      let remaining = names.filter { now < $0.value }
      return remaining.isEmpty ? nil : remaining
    }
    count = names.values.reduce(0) { $0 + $1.count }
  }
}
