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
      ([.added, .incomplete], upper, .nothing, [.appeared(.regular)]),
      ([.added, .incomplete, .closed], upper, .nothing, [.appeared(.regular), .written]),
      (.added, upper, .nothing, [.appeared(.regular), .written]),
      // An override, while it is being written and after.
      ([.added, .incomplete], upper, lower, [.modified]),
      ([.added, .incomplete, .closed], upper, lower, [.written]),
      (.added, upper, lower, [.written]),
      // Renamed over an existing entry.
      ([.added, .knownFile], upper, .nothing, [.written]),
      (.added, .file(layer: 0, .symbolicLink), .nothing, [.appeared(.symbolicLink)]),
      (
        [.added, .knownFile], .file(layer: 0, .symbolicLink), .nothing,
        [.disappeared(isDirectory: false), .appeared(.symbolicLink)]
      ),
      (
        [.added, .knownDirectory], upper, .nothing,
        [.disappeared(isDirectory: true), .appeared(.regular), .written]
      ),
      (.revealed, lower, lower, [.appeared(.regular), .written]),
    ])
  }

  @Test("disappearing files")
  func disappearing() {
    expect([
      (.removed, .nothing, .nothing, [.disappeared(isDirectory: false)]),
      ([.removed, .removedDirectory], .nothing, .nothing, [.disappeared(isDirectory: true)]),
      ([.added, .removed], .nothing, .nothing, [.disappeared(isDirectory: false)]),
      // A removed override.
      (.removed, lower, lower, [.written]),
      // A new whiteout, with and without an entry to hide.
      (.added, .nothing, lower, [.disappeared(isDirectory: false)]),
      (.added, .nothing, .directory, [.disappeared(isDirectory: true)]),
      (.added, .nothing, .nothing, []),
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
      (.added, .directory, .nothing, [.appeared(.directory)]),
      (.added, .directory, .directory, [.attributes]),
      ([.removed, .removedDirectory], .directory, .directory, [.attributes]),
      (.added, .directory, lower, [.disappeared(isDirectory: false), .appeared(.directory)]),
      (.removed, .directory, .directory, [.disappeared(isDirectory: false), .appeared(.directory)]),
      // The kernel may be using the directory, so it stays.
      ([.removed, .knownDirectory], .directory, .directory, [.attributes]),
    ])
  }

  @Test("changes below the visible entry have no events")
  func hidden() {
    let written = NameChange(aspects: [.content, .modified, .closed], layers: [1])
    #expect(EventClassifier.events(for: written, after: upper, others: upper, isHidden: false) == [])
    let removed = NameChange(aspects: .removed, layers: [1])
    #expect(EventClassifier.events(for: removed, after: .nothing, others: .nothing, isHidden: true) == [])
    #expect(EventClassifier.events(for: removed, after: upper, others: upper, isHidden: false) == [])
  }
}
