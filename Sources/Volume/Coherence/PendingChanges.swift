/// Events that have come while their subject was being changed.
struct PassedOverEvents {
  /// How many of the name itself.
  var names = 0
  /// Whether there were any of the file.
  var ofFile = false
  /// Whether any of these was `IN_CLOSE_WRITE`.
  var ofClosing = false

  var isEmpty: Bool { names == 0 && !ofFile }

  mutating func add(_ kind: EventKind) {
    switch kind {
    case .name: names += 1
    case .file: ofFile = true
    case .closing: (ofFile, ofClosing) = (true, true)
    }
  }
}

/// What an event is about.
enum EventKind {
  case name
  /// A file's content or attributes.
  case file
  /// A file that was open for writing, `IN_CLOSE_WRITE`.
  case closing
}

/// What is being changed, and which events of it have been passed over meanwhile.
struct PendingChanges<Key: Hashable> {
  private var changes: [Key: (count: Int, events: PassedOverEvents)] = [:]

  func contains(_ key: Key) -> Bool { changes[key] != nil }

  /// Whether each is being changed by at least one thread.
  var isConsistent: Bool { changes.values.allSatisfy { $0.count > 0 && $0.events.names >= 0 } }

  mutating func begin(_ key: Key) { changes[key, default: (0, PassedOverEvents())].count += 1 }

  /// - Returns: the events that have been passed over.
  mutating func end(_ key: Key) -> PassedOverEvents {
    guard let change = changes[key] else { return PassedOverEvents() }
    changes[key] = change.count > 1 ? (change.count - 1, change.events) : nil
    return change.events
  }

  /// Passes an event over if its subject is being changed.
  /// - Returns: whether it is.
  mutating func passOver(_ key: Key, _ event: EventKind) -> Bool {
    changes[key]?.events.add(event)
    return changes[key] != nil
  }
}
