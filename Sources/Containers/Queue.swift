/// A first-in, first-out queue in an array. Its operations take amortised constant time, and it never keeps more
/// than as many consumed slots as there are elements, but for a few.
public struct Queue<Element> {
  /// Those before `head` are consumed.
  private var elements: [Element?] = []
  private var head = 0

  /// Below this many consumed slots it does not move elements, and it keeps that much capacity when empty.
  private static var slack: Int { 32 }

  /// An empty queue.
  public init() {}

  /// How many elements there are.
  public var count: Int { elements.count - head }

  /// Whether there are no elements.
  public var isEmpty: Bool { head == elements.count }

  /// The element to be dequeued next.
  public var first: Element? { isEmpty ? nil : elements[head] }

  /// How many slots it occupies, those of consumed elements included.
  public var slots: Int { elements.count }

  /// Adds an element at the end.
  public mutating func enqueue(_ element: Element) { elements.append(element) }

  /// Removes the first element; nil if there is none.
  public mutating func dequeue() -> Element? {
    if isEmpty { return nil }
    let element = elements[head].take()
    head += 1
    if isEmpty {
      elements.removeAll(keepingCapacity: elements.capacity <= 4 * Self.slack)
      head = 0
    } else if head >= Self.slack, head * 2 >= elements.count {
      elements.removeFirst(head)
      head = 0
    }
    return element
  }
}

extension Queue: Sendable where Element: Sendable {}
