import Synchronization

/// An atomic counter.
public final class Counter: Sendable {
  private let value = Atomic<UInt64>(0)

  /// A counter at 0.
  public init() {}

  /// Adds to the counter.
  public func add(_ count: UInt64) { value.add(count, ordering: .relaxed) }

  /// The current value.
  public var count: UInt64 { value.load(ordering: .relaxed) }
}
