import Containers
import CLibrary

/// A FIFO queue for several producers and consumers. Its lock is a leaf: no code of others runs while it is held.
public final class BlockingQueue<Element: Sendable>: @unchecked Sendable {
  private let mutex: UnsafeMutablePointer<pthread_mutex_t>
  private let condition: UnsafeMutablePointer<pthread_cond_t>
  private var elements = Queue<Element>()
  private var isClosed = false

  /// An empty queue.
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

  /// Appends an element.
  /// - Returns: false, and the element is dropped, if the queue is closed.
  @discardableResult
  public func enqueue(_ element: Element) -> Bool {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    if isClosed { return false }
    elements.enqueue(element)
    pthread_cond_signal(condition)
    return true
  }

  /// Removes the first element; blocks while the queue is empty.
  /// - Returns: nil if the queue is closed and empty.
  public func dequeue() -> Element? {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    while elements.isEmpty, !isClosed { pthread_cond_wait(condition, mutex) }
    return elements.dequeue()
  }

  /// Closes the queue. Elements that are in it can still be removed.
  public func close() {
    pthread_mutex_lock(mutex)
    isClosed = true
    pthread_cond_broadcast(condition)
    pthread_mutex_unlock(mutex)
  }
}
