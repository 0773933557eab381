import Posix
import TestSupport
import Testing

@testable import Fuse

@Suite struct RushTests {
  private let folder: TemporaryFolder
  private let processors: CPULatencyRequest

  /// A file in place of the machine's device, which takes down what is asked.
  init() throws {
    folder = try TemporaryFolder()
    try (folder / "driver").write("haltpoll\n")
    try (folder / "device").write("")
    processors = try #require(
      CPULatencyRequest(
        device: String(decoding: (folder / "device").bytes, as: UTF8.self),
        driver: String(decoding: (folder / "driver").bytes, as: UTF8.self)))
  }

  @Test("processors are kept awake while requests come, and not for long after")
  func rush() throws {
    let rush = try #require(try Rush(processors))
    defer { rush.end() }
    #expect(!rush.isOn)
    for _ in 0..<3 {
      for _ in 0..<Rush.worth { rush.noteRequest() }
      rush.begin()
      #expect(processors.isActive && rush.isOn)
      #expect(eventually(within: 10) { !processors.isActive }, "nobody asks any more")
    }
  }

  @Test("a request now and then is no rush")
  func trickle() throws {
    let rush = try #require(try Rush(processors))
    defer { rush.end() }
    for _ in 0..<Rush.worth { rush.noteRequest() }
    rush.begin()
    let isOver = eventually(within: 10) {
      rush.noteRequest()
      return !rush.isOn
    }
    #expect(isOver, "the test looks every few milliseconds")
  }

  @Test("whoever ends it in the middle leaves nobody awake")
  func end() throws {
    let rush = try #require(try Rush(processors))
    for _ in 0..<1_000_000 { rush.noteRequest() }
    rush.begin()
    rush.end()
    #expect(!processors.isActive)
  }

  @Test("without processors that can be kept awake there is none")
  func none() throws { #expect(try Rush(nil) === nil) }
}
