/// An array that stores its first element in place, for places where most arrays have only one.
public struct ShortArray<Element> {
  /// nil if it is empty.
  @usableFromInline var first: Element?
  /// The elements after the first.
  @usableFromInline var others: [Element] = []

  /// An empty array.
  @inlinable public init() {}

  /// Appends an element.
  @inlinable
  public mutating func append(_ element: Element) {
    if first == nil { first = element } else { others.append(element) }
  }
}

extension ShortArray: RandomAccessCollection, RangeReplaceableCollection {
  /// The number of elements.
  @inlinable public var count: Int { first == nil ? 0 : others.count + 1 }

  /// Whether there is no element.
  @inlinable public var isEmpty: Bool { first == nil }

  /// The last element; nil if there is none.
  @inlinable public var last: Element? { others.last ?? first }

  /// 0.
  @inlinable public var startIndex: Int { 0 }

  /// The number of elements.
  @inlinable public var endIndex: Int { count }

  /// The element at an index, which must be in bounds.
  @inlinable
  public subscript(index: Int) -> Element {
    guard index == 0 else { return others[index - 1] }
    guard let first else { preconditionFailure("the array is empty") }
    return first
  }

  /// Inserts an element.
  @inlinable
  public mutating func insert(_ element: Element, at index: Int) {
    guard index == 0 else { return others.insert(element, at: index - 1) }
    if let first { others.insert(first, at: 0) }
    first = element
  }

  /// Removes the element at an index, which must be in bounds.
  @discardableResult @inlinable
  public mutating func remove(at index: Int) -> Element {
    let removed = self[index]
    if index > 0 {
      others.remove(at: index - 1)
    } else {
      first = others.isEmpty ? nil : others.removeFirst()
    }
    return removed
  }

  /// Replaces a range of elements.
  @inlinable
  public mutating func replaceSubrange(
    _ range: Range<Int>, with elements: some Collection<Element>
  ) {
    var all = Array(self)
    all.replaceSubrange(range, with: elements)
    first = all.first
    others = Array(all.dropFirst())
  }
}

extension ShortArray: Sendable where Element: Sendable {}
