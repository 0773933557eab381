import CLinux
import Glibc

/// A thread of the system's, which runs one function to its end.
public struct Thread: ~Copyable, Sendable {
  private final class Body: Sendable {
    let run: @Sendable () -> Void
    init(_ run: @escaping @Sendable () -> Void) { self.run = run }
  }

  private let handle: pthread_t

  /// Starts a thread.
  /// - Parameter name: what `ps` shows; 15 bytes at most count.
  /// - Throws: EAGAIN when the system has no room for one more.
  public init(name: String, _ run: @escaping @Sendable () -> Void) throws(Errno) {
    handle = try Self.create(nil) {
      linux_name_thread(name)
      linux_prefer_short_turns()
      linux_own_working_directory()
      Interrupt.unblock()
      run()
    }
  }

  private static func create(
    _ attributes: UnsafePointer<pthread_attr_t>?, _ run: @escaping @Sendable () -> Void
  ) throws(Errno) -> pthread_t {
    var handle = pthread_t()
    let body = Unmanaged.passRetained(Body(run))
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

  /// The calling thread's number, which no other thread has while it runs.
  public static var currentID: Int32 { linux_thread_number() }

  /// Waits until the function has returned.
  public consuming func join() {
    pthread_join(handle, nil)
  }

  /// Makes a blocking call of the thread's return EINTR, if it is in one; `Interrupt.installHandler` comes first.
  public borrowing func interrupt() {
    pthread_kill(handle, Interrupt.signal)
  }
}

extension Thread {
  /// Starts a thread that nobody waits for. It takes no signals: those are the program's business, of which a
  /// library knows nothing.
  /// - Parameter name: what `ps` shows; 15 bytes at most count.
  /// - Throws: EAGAIN when the system has no room for one more.
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
    // A thread begins with the mask of the one that starts it.
    pthread_sigmask(SIG_SETMASK, &all, &before)
    defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
    _ = try create(&attributes) {
      linux_name_thread(name)
      run()
    }
  }
}

/// A thread that can be waited for once.
public final class ThreadHandle: Sendable {
  private let thread: Locked<Thread?>
  /// Takes a thread over.
  public init(_ thread: consuming Thread) { self.thread = Locked(thread) }

  /// As `Thread.interrupt`, unless somebody has waited for it.
  public func interrupt() { thread.withLock { $0?.interrupt() } }

  /// Waits until its function has returned, if nobody did yet.
  public func join() {
    if let thread = thread.withLock({ $0.take() }) { thread.join() }
  }
}

/// The signal that only wakes a thread out of a blocking call.
public enum Interrupt {
  static let signal = SIGUSR2

  /// Lets the signal reach the calling thread, which may have been started by one that blocks all.
  static func unblock() {
    var set = sigset_t()
    sigemptyset(&set)
    sigaddset(&set, signal)
    pthread_sigmask(SIG_UNBLOCK, &set, nil)
  }

  /// Gives the signal a handler that does nothing.
  public static func installHandler() throws(Errno) {
    _ = try checked { linux_install_interrupt_handler(signal) }
  }
}
