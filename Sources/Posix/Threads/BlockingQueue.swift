import Containers
import Glibc

/// A line of things that threads add to and take from; who takes waits until there is one.
public final class BlockingQueue<Element: Sendable>: @unchecked Sendable {
  private let mutex: UnsafeMutablePointer<pthread_mutex_t>
  private let condition: UnsafeMutablePointer<pthread_cond_t>
  private var elements = Queue<Element>()
  private var isClosed = false

  /// An empty line.
  public init() {
    mutex = .allocate(capacity: 1)
    mutex.initialize(to: pthread_mutex_t())
    pthread_mutex_init(mutex, nil)
    condition = .allocate(capacity: 1)
    condition.initialize(to: pthread_cond_t())
    pthread_cond_init(condition, nil)
  }

  deinit {
    pthread_cond_destroy(condition)
    condition.deallocate()
    pthread_mutex_destroy(mutex)
    mutex.deallocate()
  }

  /// Adds an element at the end.
  /// - Returns: false after the end: then it was not added.
  @discardableResult
  public func enqueue(_ element: Element) -> Bool {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    if isClosed { return false }
    elements.enqueue(element)
    pthread_cond_signal(condition)
    return true
  }

  /// Takes the first element; waits for one.
  /// - Returns: nil after the end, when none is left.
  public func dequeue() -> Element? {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    while elements.isEmpty, !isClosed { pthread_cond_wait(condition, mutex) }
    return elements.dequeue()
  }

  /// Ends the line: nothing can be added any more.
  public func close() {
    pthread_mutex_lock(mutex)
    isClosed = true
    pthread_cond_broadcast(condition)
    pthread_mutex_unlock(mutex)
  }
}
