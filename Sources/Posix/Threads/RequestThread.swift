import CLinux

/// What a thread is doing, read by the thread that supervises it.
public struct ThreadActivity: Sendable, Equatable {
  /// The `unique` of the FUSE request that it processes; 0 for none.
  public let request: UInt64
  /// The thread that made the request.
  public let caller: Int32
  /// The layer that its present call reads; nil outside of such calls.
  public let layer: Int?
  /// The number of calls on layers that it has begun.
  public let calls: UInt64
}

/// A thread that processes FUSE requests, as others see it. It must outlive the use.
public struct RequestThread: Sendable, Hashable {
  private nonisolated(unsafe) let state: UnsafePointer<linux_thread_state>

  /// The calling thread.
  public static var current: RequestThread {
    RequestThread(state: UnsafePointer(linux_current_thread().unsafelyUnwrapped))
  }

  /// What the thread is doing now.
  public var activity: ThreadActivity {
    let now = linux_read_thread(state)
    return ThreadActivity(
      request: now.request, caller: now.caller, layer: now.layer == 0 ? nil : Int(now.layer) - 1,
      calls: now.calls)
  }

  // MARK: - The calling thread

  /// Records that the calling thread begins to process a request; 0 for none.
  @inline(__always)
  public static func begin(request: UInt64, caller: Int32) { linux_begin_request(request, caller) }

  /// The request that the calling thread processes; 0 for none.
  public static var request: UInt64 { linux_current_thread().unsafelyUnwrapped.pointee.request }

  /// Whether the calling thread may notify the kernel, which may wait for replies to requests: it processes none, or runs
  /// the body of `withNotifications`.
  public static var mayNotify: Bool {
    let state = linux_current_thread().unsafelyUnwrapped.pointee
    return state.request == 0 || state.may_notify
  }

  /// Runs a body that notifies the kernel, although the calling thread owes a reply. The caller proves that the kernel does
  /// not wait for that reply.
  public static func withNotifications<Result>(_ body: () -> Result) -> Result {
    linux_current_thread().unsafelyUnwrapped.pointee.may_notify = true
    defer { linux_current_thread().unsafelyUnwrapped.pointee.may_notify = false }
    return body()
  }

  /// Whether the calling thread processes a request that another one has put off.
  @inline(__always)
  public static var isRepeating: Bool { linux_current_thread().unsafelyUnwrapped.pointee.is_repeating }

  /// Makes the calling thread one that processes what others have put off.
  public static func repeatRequests() { linux_current_thread().unsafelyUnwrapped.pointee.is_repeating = true }

  /// Allows the calling thread to put requests off.
  public static func allowDeferral() {
    linux_current_thread().unsafelyUnwrapped.pointee.defers_requests = true
  }

  /// Puts the request of the calling thread off.
  /// - Returns: false if the thread cannot.
  public static func deferRequest() -> Bool {
    let state = linux_current_thread().unsafelyUnwrapped
    guard state.pointee.defers_requests, state.pointee.deferred != 0 else { return false }
    state.pointee.has_deferred = true
    return true
  }

  /// The layer for which the request of the calling thread was put off; nil if it was not.
  @inline(__always)
  public static var deferredLayer: Int? {
    linux_current_thread().unsafelyUnwrapped.pointee.has_deferred ? LayerAccess.deferredLayer : nil
  }
}
