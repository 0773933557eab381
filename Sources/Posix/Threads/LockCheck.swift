import CLinux

/// A value that knows when it is inconsistent. Debug builds stop the process if it is when its lock is released.
public protocol InvariantChecking: ~Copyable {
  /// The invariant that does not hold; nil if all do.
  borrowing func brokenInvariant() -> String?
}

/// A lock's place in the order in which a thread takes several.
public struct LockOrder: ExpressibleByIntegerLiteral, Comparable, Sendable {
  /// That of a lock under which no other is taken.
  public static let leaf = LockOrder(integerLiteral: .max)

  private let rank: UInt8

  public init(integerLiteral rank: UInt8) { self.rank = rank }

  public static func < (lhs: LockOrder, rhs: LockOrder) -> Bool { lhs.rank < rhs.rank }
}

extension LockOrder {
  /// In debug builds, stops the process if the calling thread holds a lock.
  @inline(__always)
  public static func assertNoneIsHeld() {
    #if DEBUG
    LockCheck.assertNoneIsHeld()
    #endif
  }
}

#if DEBUG
/// Checks that a lock is taken in its order. The locks that a thread holds are linked, the last one first.
@usableFromInline
final class LockCheck: @unchecked Sendable {
  private let order: LockOrder
  private let place: String
  /// What the thread that holds the lock had taken before; the lock guards it.
  private var outer: UnsafeMutableRawPointer?

  init(_ order: LockOrder, _ file: StaticString, _ line: UInt) {
    (self.order, place) = (order, "\(file):\(line)")
  }

  private static var last: UnsafeMutableRawPointer? {
    get { linux_current_thread().unsafelyUnwrapped.pointee.held_lock }
    set { linux_current_thread().unsafelyUnwrapped.pointee.held_lock = newValue }
  }

  private static func at(_ pointer: UnsafeMutableRawPointer) -> LockCheck {
    Unmanaged<LockCheck>.fromOpaque(pointer).takeUnretainedValue()
  }

  @usableFromInline
  static func assertNoneIsHeld() {
    if let held = last.map(at) { fatalError("the lock at \(held.place) is held") }
  }

  /// To be called before the mutex is locked, which may wait for ever.
  @usableFromInline
  func willLock() {
    guard let held = Self.last.map(Self.at), held.order >= order else { return }
    fatalError("the lock at \(place) is taken while the one at \(held.place) is held")
  }

  @usableFromInline
  func didLock() {
    outer = Self.last
    Self.last = Unmanaged.passUnretained(self).toOpaque()
  }

  @usableFromInline
  func willUnlock(_ brokenInvariant: String?) {
    if let brokenInvariant {
      fatalError("the value of the lock at \(place) is inconsistent: \(brokenInvariant)")
    }
    Self.last = outer
  }
}
#endif
