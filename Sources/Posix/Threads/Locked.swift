import Glibc

/// A value protected by a pthread mutex.
///
/// Not `Synchronization.Mutex`, which collapses under contention and makes ThreadSanitizer report false races.
public final class Locked<Value: ~Copyable>: @unchecked Sendable {
  @usableFromInline let mutex: UnsafeMutablePointer<pthread_mutex_t>
  // The mutex excludes other accesses; the check at run time would cost more than it.
  @exclusivity(unchecked) @usableFromInline var value: Value

  /// Protects the value.
  public init(_ value: consuming Value) {
    mutex = .allocate(capacity: 1)
    mutex.initialize(to: pthread_mutex_t())
    var attributes = pthread_mutexattr_t()
    pthread_mutexattr_init(&attributes)
    // Most are held for less than a microsecond: a thread spins that long before it sleeps.
    pthread_mutexattr_settype(&attributes, CInt(PTHREAD_MUTEX_ADAPTIVE_NP))
    pthread_mutex_init(mutex, &attributes)
    pthread_mutexattr_destroy(&attributes)
    self.value = value
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
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    return try body(&value)
  }
}
