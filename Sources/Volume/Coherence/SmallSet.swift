/// A set that nearly always has one element, which it then stores inline.
enum SmallSet<Element: Hashable> {
  case one(Element)
  /// Any number of elements except one.
  case many(Set<Element>)

  init(_ elements: Set<Element>) {
    if elements.count == 1, let element = elements.first {
      self = .one(element)
    } else {
      self = .many(elements)
    }
  }

  var elements: Set<Element> {
    switch self {
    case .one(let element): [element]
    case .many(let elements): elements
    }
  }

  var isEmpty: Bool { if case .many(let elements) = self { elements.isEmpty } else { false } }

  mutating func insert(_ element: Element) {
    if case .one(element) = self { return }
    self = SmallSet(elements.union([element]))
  }

  mutating func remove(_ element: Element) { self = filter { $0 != element } }

  func filter(_ isIncluded: (Element) -> Bool) -> SmallSet { SmallSet(elements.filter(isIncluded)) }
}

extension SmallSet: ExpressibleByArrayLiteral {
  init(arrayLiteral elements: Element...) { self.init(Set(elements)) }
}

extension SmallSet: Sendable where Element: Sendable {}
