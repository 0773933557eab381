import Posix
import Testing

@testable import Volume

@Suite struct EventClassifierTests {
  private typealias Presence = EventClassifier.Presence
  private typealias Event = EventClassifier.Event
  private typealias Row = (Invalidation.Aspects, Presence, Presence, [Event])

  private let upper = Presence.file(layer: 0, .regular)
  private let lower = Presence.file(layer: 1, .regular)

  /// Checks rows of: aspects of a change in layer 0, presence after it, presence in the other layers, events.
  private func expect(_ rows: [Row], location: SourceLocation = #_sourceLocation) {
    for (aspects, after, others, events) in rows {
      let change = NameChange(aspects: aspects, layers: [0])
      #expect(
        EventClassifier.events(for: change, after: after, others: others, isHidden: false) == events,
        "\(aspects) \(after) \(others)", sourceLocation: location)
    }
  }

  @Test("appearing files")
  func appearing() {
    expect([
      ([.came, .begun], upper, .nothing, [.appeared(.regular)]),
      ([.came, .begun, .closed], upper, .nothing, [.appeared(.regular), .written]),
      (.came, upper, .nothing, [.appeared(.regular), .written]),
      // An override, while it is being written and after.
      ([.came, .begun], upper, lower, [.modified]),
      ([.came, .begun, .closed], upper, lower, [.written]),
      (.came, upper, lower, [.written]),
      // Renamed over an existing entry.
      ([.came, .knownFile], upper, .nothing, [.written]),
      (.came, .file(layer: 0, .symbolicLink), .nothing, [.appeared(.symbolicLink)]),
      (
        [.came, .knownFile], .file(layer: 0, .symbolicLink), .nothing,
        [.disappeared(isDirectory: false), .appeared(.symbolicLink)]
      ),
      (
        [.came, .knownDirectory], upper, .nothing,
        [.disappeared(isDirectory: true), .appeared(.regular), .written]
      ),
      (.uncovered, lower, lower, [.appeared(.regular), .written]),
    ])
  }

  @Test("disappearing files")
  func disappearing() {
    expect([
      (.went, .nothing, .nothing, [.disappeared(isDirectory: false)]),
      ([.went, .wentDirectory], .nothing, .nothing, [.disappeared(isDirectory: true)]),
      ([.came, .went], .nothing, .nothing, [.disappeared(isDirectory: false)]),
      // A removed override.
      (.went, lower, lower, [.written]),
      // A new whiteout, with and without an entry to hide.
      (.came, .nothing, lower, [.disappeared(isDirectory: false)]),
      (.came, .nothing, .directory, [.disappeared(isDirectory: true)]),
      (.came, .nothing, .nothing, []),
    ])
  }

  @Test("changing files")
  func changing() {
    expect([
      ([.content, .modified], upper, .nothing, [.modified]),
      ([.content, .closed], upper, .nothing, [.closed]),
      ([.content, .modified, .closed], upper, .nothing, [.written]),
      (.attributes, upper, .nothing, [.attributes]),
      (.attributes, .nothing, .nothing, []),
      (.attributes, .directory, .nothing, [.attributes]),
    ])
  }

  @Test("directories")
  func directories() {
    expect([
      (.came, .directory, .nothing, [.appeared(.directory)]),
      (.came, .directory, .directory, [.attributes]),
      ([.went, .wentDirectory], .directory, .directory, [.attributes]),
      (.came, .directory, lower, [.disappeared(isDirectory: false), .appeared(.directory)]),
      (.went, .directory, .directory, [.disappeared(isDirectory: false), .appeared(.directory)]),
      // The kernel may be using the directory, so it stays.
      ([.went, .knownDirectory], .directory, .directory, [.attributes]),
    ])
  }

  @Test("changes below the visible entry have no events")
  func hidden() {
    let written = NameChange(aspects: [.content, .modified, .closed], layers: [1])
    #expect(EventClassifier.events(for: written, after: upper, others: upper, isHidden: false) == [])
    let removed = NameChange(aspects: .went, layers: [1])
    #expect(EventClassifier.events(for: removed, after: .nothing, others: .nothing, isHidden: true) == [])
    #expect(EventClassifier.events(for: removed, after: upper, others: upper, isHidden: false) == [])
  }
}
