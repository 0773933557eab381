import CLibrary

/// A value protected by a pthread mutex.
///
/// A lock is a leaf unless it states an order: a thread that holds a leaf takes no other lock. A lock with an order is
/// taken only by threads whose other locks have lower orders. Debug builds check this whenever a lock is taken, and the
/// value's invariants whenever it is released.
///
/// Not `Synchronization.Mutex`, which collapses under contention and makes ThreadSanitizer report false races.
public final class Locked<Value: ~Copyable>: @unchecked Sendable {
  @usableFromInline let mutex: UnsafeMutablePointer<pthread_mutex_t>
  // The mutex excludes other accesses; the check at run time would cost more than it.
  @exclusivity(unchecked) @usableFromInline var value: Value
  #if DEBUG
  @usableFromInline let check: LockCheck
  /// What `InvariantChecking` says of the value.
  @usableFromInline let brokenInvariant: (borrowing Value) -> String?
  #endif

  #if DEBUG
  /// Protects a value.
  /// - Parameter order: greater than those of the locks that a thread may hold when it takes this one.
  public convenience init(
    order: LockOrder = .leaf, _ value: consuming Value, file: StaticString = #fileID, line: UInt = #line
  ) {
    self.init(value, LockCheck(order, file, line)) { _ in nil }
  }

  private init(
    _ value: consuming Value, _ check: LockCheck, _ brokenInvariant: @escaping (borrowing Value) -> String?
  ) {
    mutex = Self.newMutex()
    self.value = value
    self.check = check
    self.brokenInvariant = brokenInvariant
  }
  #else
  /// Protects a value.
  /// - Parameter order: greater than those of the locks that a thread may hold when it takes this one.
  public init(order: LockOrder = .leaf, _ value: consuming Value) {
    mutex = Self.newMutex()
    self.value = value
  }
  #endif

  private static func newMutex() -> UnsafeMutablePointer<pthread_mutex_t> {
    let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    mutex.initialize(to: pthread_mutex_t())
    var attributes = pthread_mutexattr_t()
    pthread_mutexattr_init(&attributes)
    // Most are held for less than a microsecond: a thread spins that long before it sleeps.
    pthread_mutexattr_settype(&attributes, CInt(PTHREAD_MUTEX_ADAPTIVE_NP))
    pthread_mutex_init(mutex, &attributes)
    pthread_mutexattr_destroy(&attributes)
    return mutex
  }

  deinit {
    pthread_mutex_destroy(mutex)
    mutex.deallocate()
  }

  /// Calls the body with the mutex held. The mutex is not recursive.
  @inlinable @inline(__always)
  public func withLock<Result: ~Copyable, Failure: Error>(
    _ body: (inout Value) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    #if DEBUG
    check.willLock()
    #endif
    pthread_mutex_lock(mutex)
    #if DEBUG
    check.didLock()
    #endif
    defer {
      #if DEBUG
      check.willUnlock(brokenInvariant(value))
      #endif
      pthread_mutex_unlock(mutex)
    }
    return try body(&value)
  }
}

#if DEBUG
extension Locked where Value: InvariantChecking & ~Copyable {
  /// As the other initializer; the value's invariants are checked whenever the mutex is released.
  public convenience init(
    order: LockOrder = .leaf, _ value: consuming Value, file: StaticString = #fileID, line: UInt = #line
  ) {
    self.init(value, LockCheck(order, file, line)) { $0.brokenInvariant() }
  }
}
#endif
