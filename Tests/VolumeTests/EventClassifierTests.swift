import Posix
import Testing

@testable import Volume

/// Which events what happened in the layers is worth, as a table.
@Suite struct EventClassifierTests {
  private typealias Presence = EventClassifier.Presence
  private typealias Event = EventClassifier.Event
  private typealias Row = (Invalidation.Aspects, Presence, Presence, [Event])

  private let upper = Presence.file(layer: 0, .regular)
  private let lower = Presence.file(layer: 1, .regular)

  /// Rows of what happened (in layer 0), what is there now, what the other layers have, and the events.
  private func expect(_ rows: [Row], location: SourceLocation = #_sourceLocation) {
    for (aspects, after, others, events) in rows {
      let news = NameChange(aspects: aspects, layers: [0])
      #expect(
        EventClassifier.events(for: news, after: after, others: others, isHidden: false) == events,
        "\(aspects) \(after) \(others)", sourceLocation: location)
    }
  }

  @Test("files that come")
  func coming() {
    expect([
      ([.came, .begun], upper, .nothing, [.appeared(.regular)]),
      ([.came, .begun, .closed], upper, .nothing, [.appeared(.regular), .written]),
      (.came, upper, .nothing, [.appeared(.regular), .written]),
      // An override, while it is written and when it is done.
      ([.came, .begun], upper, lower, [.modified]),
      ([.came, .begun, .closed], upper, lower, [.written]),
      (.came, upper, lower, [.written]),
      // Renamed over what was there.
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

  @Test("files that go")
  func going() {
    expect([
      (.went, .nothing, .nothing, [.disappeared(isDirectory: false)]),
      ([.went, .wentDirectory], .nothing, .nothing, [.disappeared(isDirectory: true)]),
      ([.came, .went], .nothing, .nothing, [.disappeared(isDirectory: false)]),
      // An override that goes.
      (.went, lower, lower, [.written]),
      // A whiteout that comes, over something and over nothing.
      (.came, .nothing, lower, [.disappeared(isDirectory: false)]),
      (.came, .nothing, .directory, [.disappeared(isDirectory: true)]),
      (.came, .nothing, .nothing, []),
    ])
  }

  @Test("files that change")
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
      // In use, maybe: it is left alone.
      ([.went, .knownDirectory], .directory, .directory, [.attributes]),
    ])
  }

  @Test("what happens below what is seen, nobody hears of")
  func hidden() {
    let news = NameChange(aspects: [.content, .modified, .closed], layers: [1])
    #expect(EventClassifier.events(for: news, after: upper, others: upper, isHidden: false) == [])
    let gone = NameChange(aspects: .went, layers: [1])
    #expect(EventClassifier.events(for: gone, after: .nothing, others: .nothing, isHidden: true) == [])
    #expect(EventClassifier.events(for: gone, after: upper, others: upper, isHidden: false) == [])
  }
}
