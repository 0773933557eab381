import Synchronization

/// A count that only grows, kept by several threads.
public final class Counter: Sendable {
  private let value = Atomic<UInt64>(0)

  /// Begins at 0.
  public init() {}

  /// Grows by so many.
  public func add(_ count: UInt64) { value.add(count, ordering: .relaxed) }

  /// The count.
  public var count: UInt64 { value.load(ordering: .relaxed) }
}
