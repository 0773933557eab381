import CLinux
import CLibrary

/// A POSIX thread that runs one function.
public struct Thread: ~Copyable, Sendable {
  private final class Body: Sendable {
    let run: @Sendable () -> Void
    init(_ run: @escaping @Sendable () -> Void) { self.run = run }
  }

  private let handle: pthread_t

  /// Starts a thread.
  /// - Parameters:
  ///   - name: the name shown by ps(1), truncated to 15 bytes.
  ///   - hasShortSlice: whether it preempts threads with longer scheduler slices when it wakes (Linux 6.12). It gets no
  ///     larger share of the processor for that.
  /// - Throws: EAGAIN.
  public init(
    name: String, hasShortSlice: Bool = false, _ run: @escaping @Sendable () -> Void
  ) throws(Errno) {
    handle = try Self.create(nil) {
      linux_name_thread(name)
      if hasShortSlice { linux_set_short_slice() }
      Interrupt.unblock()
      run()
    }
  }

  private static func create(
    _ attributes: UnsafePointer<pthread_attr_t>?, _ run: @escaping @Sendable () -> Void
  ) throws(Errno) -> pthread_t {
    var handle = pthread_t()
    // A thread would inherit the binding.
    let isBound = linux_is_bound()
    let body = Unmanaged.passRetained(
      Body {
        if isBound { linux_bind(-1, false) }
        run()
      })
    let result = pthread_create(
      &handle, attributes,
      { context in
        guard let context else { return nil }
        Unmanaged<Body>.fromOpaque(context).takeRetainedValue().run()
        return nil
      }, body.toOpaque())
    guard result == 0 else {
      body.release()
      throw Errno(rawValue: result)
    }
    return handle
  }

  /// Calls gettid(2).
  public static var currentID: Int32 { linux_gettid() }

  /// Calls pthread_join(3).
  public consuming func join() {
    pthread_join(handle, nil)
  }

  /// Calls pthread_detach(3).
  public consuming func detach() {
    pthread_detach(handle)
  }

  /// Makes a blocking system call of the thread return EINTR; requires `Interrupt.installHandler`.
  public borrowing func interrupt() {
    pthread_kill(handle, Interrupt.signal)
  }
}

extension Thread {
  /// Gives the calling thread the lowest share of the processor that still keeps it from counting as idle (nice 19).
  public static func lowerPriority() { linux_lower_priority() }

  /// Lets threads run that wait for the calling one's processor; calls sched_yield(2).
  public static func yield() { linux_yield() }

  /// Sets whether the calling thread runs as soon as it wakes, whatever else runs (SCHED_FIFO, with the lowest priority),
  /// where the process may do that. For the sleep before work that is done in well under a millisecond: programs on the
  /// same processor wait for it.
  ///
  /// A thread of the usual policy may have to wait for the next tick of the scheduler's clock, 4 ms, behind a program that
  /// uses the processor, even while another one is idle, and even with a short slice: where it has had more than its share.
  public static func setUrgent(_ isUrgent: Bool) { linux_set_urgent(isUrgent) }
}

extension Thread {
  /// Starts a detached thread with all signals blocked, as a library must not handle the program's signals.
  /// - Parameter name: the name shown by ps(1), truncated to 15 bytes.
  /// - Throws: EAGAIN.
  public static func startDetached(
    name: String, _ run: @escaping @Sendable () -> Void
  ) throws(Errno) {
    var attributes = pthread_attr_t()
    pthread_attr_init(&attributes)
    defer { pthread_attr_destroy(&attributes) }
    pthread_attr_setdetachstate(&attributes, CInt(PTHREAD_CREATE_DETACHED))
    var all = sigset_t()
    var before = sigset_t()
    sigfillset(&all)
    // A thread inherits the signal mask of its creator.
    pthread_sigmask(SIG_SETMASK, &all, &before)
    defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
    _ = try create(&attributes) {
      linux_name_thread(name)
      run()
    }
  }
}

extension Thread {
  /// Goes on in a new thread of a process that was forked without fork(3). The calling one keeps its thread-local
  /// memory, in which Swift's mutexes find the thread's ID: that of the parent, by which the kernel would look for the
  /// owner of a contended mutex.
  ///
  /// Exits with 1 if no thread can be started.
  public static func continueAfterFork(_ run: @escaping () -> Never) -> Never {
    let body = UncheckedBody(run: run)
    do throws(Errno) { _ = try create(nil) { body.run() } } catch { _exit(1) }
    while true { pause() }
  }

  /// The calling thread only waits while the other one runs it.
  private struct UncheckedBody: @unchecked Sendable {
    let run: () -> Never
  }
}

/// A shared thread, which is joined or detached once.
public final class ThreadHandle: Sendable {
  private let thread: Locked<Thread?>
  /// Takes ownership of a thread.
  public init(_ thread: consuming Thread) { self.thread = Locked(thread) }

  /// As `Thread.interrupt`; does nothing after `join` or `detach`.
  public func interrupt() { thread.withLock { $0?.interrupt() } }

  /// Joins the thread; does nothing the second time.
  public func join() {
    if let thread = thread.withLock({ $0.take() }) { thread.join() }
  }

  /// Leaves the thread to end by itself.
  public func detach() {
    if let thread = thread.withLock({ $0.take() }) { thread.detach() }
  }
}

/// The number of processors on which the process may run (sched_setaffinity(2), cpusets); at least 1.
public let processorCount = max(1, Int(linux_usable_processors()))

/// The memory that malloc(3) reserves.
public enum MemoryArenas {
  /// Has all threads share an arena per processor. By default glibc gives nearly every thread its own, and what one has
  /// freed serves no other.
  public static func share() { linux_limit_arenas(CInt(clamping: max(2, processorCount))) }
}
