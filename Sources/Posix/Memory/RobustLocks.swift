import CLinux
import CLibrary

/// Locks in shared memory, one for each of a process's threads. The kernel releases what a dying thread holds (robust
/// futexes) once that thread has left its last system call, and before it unmaps the process's memory.
public struct RobustLocks: @unchecked Sendable {
  /// How many there are.
  public static let count = 64
  /// Bytes from one to the next: a cache line.
  private static let stride = 64

  private let first: UnsafeMutableRawPointer

  /// Refers to the locks at an offset in the memory, which must outlive all uses.
  public init(in memory: SharedMemory, at offset: Int) { first = memory.base + offset }

  /// Makes all of them free, while no thread of this process holds one.
  public func reset() {
    for index in 0..<Self.count { linux_lock_initialize(lock(index)) }
  }

  /// Acquires a lock that no other thread of this process uses.
  public func acquire(_ index: Int) { _ = linux_lock_acquire(lock(index), -1) }

  /// Releases a lock that this thread holds.
  public func release(_ index: Int) { linux_lock_release(lock(index)) }

  /// Waits until each lock was free once. Zeros are free locks, too.
  /// - Returns: false after the timeout.
  @discardableResult
  public func waitUntilFree(milliseconds: CInt) -> Bool {
    let deadline = TimeSpec.monotonic.advanced(byMilliseconds: milliseconds)
    return (0..<Self.count).allSatisfy { index in
      let remaining = deadline.milliseconds(since: .monotonic)
      if linux_lock_acquire(lock(index), remaining) == linux_lock_failed { return false }
      linux_lock_release(lock(index))
      return true
    }
  }

  private func lock(_ index: Int) -> UnsafeMutableRawPointer { first + index * Self.stride }
}
