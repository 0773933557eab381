import CLinux

/// What the calling thread may do about a layer that may not answer.
///
/// Threads that others depend on must not wait for a remote or unresponsive layer. On such a thread a call on the
/// layer throws `Errno.deferred` instead, and the work is done again on a thread that belongs to the layer.
public enum LayerAccess: UInt8, Sendable {
  /// Waits for any layer; the access of the threads that belong to a layer, and of programs that have no others.
  case waiting
  /// Defers what needs an isolated layer.
  case shared
  /// As `shared`, but answers from the last known state where that is enough.
  case lastKnown
  /// As `lastKnown`, and takes overdue layers as empty.
  case skipping

  /// Whether the last known state may answer.
  public var usesKnownState: Bool { self == .lastKnown || self == .skipping }

  /// The access of the calling thread.
  public static var current: LayerAccess {
    get { LayerAccess(rawValue: linux_current_thread().unsafelyUnwrapped.pointee.access) ?? .waiting }
    set { linux_current_thread().unsafelyUnwrapped.pointee.access = newValue.rawValue }
  }

  /// Runs the body with another access.
  public static func with<Result, Failure: Error>(
    _ access: LayerAccess, _ body: () throws(Failure) -> Result
  ) throws(Failure) -> Result {
    let former = current
    current = access
    defer { current = former }
    return try body()
  }

  /// The layer for which a call of this thread was put off last; nil if none was since `clearDeferral`.
  public static var deferredLayer: Int? {
    let layer = linux_current_thread().unsafelyUnwrapped.pointee.deferred
    return layer == 0 ? nil : Int(layer) - 1
  }

  /// Forgets a call that was put off and is not needed.
  public static func clearDeferral() { linux_current_thread().unsafelyUnwrapped.pointee.deferred = 0 }

  /// Records the layer for which a call is put off.
  public static func recordDeferral(to layer: Int) {
    linux_current_thread().unsafelyUnwrapped.pointee.deferred = UInt32(layer) + 1
  }
}

/// The call on a layer that the calling thread is making, for the thread that supervises it.
public enum LayerCall {
  /// Records that a call begins.
  /// - Returns: what `end` takes.
  @inline(__always)
  public static func begin(_ layer: Int) -> UInt32 {
    linux_begin_call(UInt32(truncatingIfNeeded: layer) &+ 1)
  }

  /// Records that a call has returned.
  @inline(__always)
  public static func end(_ former: UInt32) { linux_end_call(former) }
}
