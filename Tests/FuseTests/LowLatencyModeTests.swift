import Posix
import TestSupport
import Testing

@testable import Fuse

@Suite struct LowLatencyModeTests {
  private let folder: TemporaryFolder
  private let latencyRequest: CPULatencyRequest

  /// Regular files replace the device and the driver's name.
  init() throws {
    folder = try TemporaryFolder()
    try (folder / "driver").write("haltpoll\n")
    try (folder / "device").write("")
    latencyRequest = try #require(
      CPULatencyRequest(
        device: String(decoding: (folder / "device").bytes, as: UTF8.self),
        driver: String(decoding: (folder / "driver").bytes, as: UTF8.self)))
  }

  @Test("processors are kept awake during a burst, and not for long after it")
  func burst() throws {
    let mode = try #require(try LowLatencyMode(latencyRequest))
    defer { mode.stop() }
    #expect(!mode.isActive)
    for _ in 0..<3 {
      for _ in 0..<LowLatencyMode.burstLength { mode.countRequest() }
      mode.activate()
      #expect(latencyRequest.isActive && mode.isActive)
      #expect(eventually(within: 10) { !latencyRequest.isActive }, "no more requests arrive")
    }
  }

  @Test("occasional requests do not prolong a burst")
  func trickle() throws {
    let mode = try #require(try LowLatencyMode(latencyRequest))
    defer { mode.stop() }
    for _ in 0..<LowLatencyMode.burstLength { mode.countRequest() }
    mode.activate()
    let isOver = eventually(within: 10) {
      mode.countRequest()
      return !mode.isActive
    }
    #expect(isOver, "one request every few milliseconds")
  }

  @Test("stopping during a burst withdraws the request")
  func stop() throws {
    let mode = try #require(try LowLatencyMode(latencyRequest))
    for _ in 0..<1_000_000 { mode.countRequest() }
    mode.activate()
    mode.stop()
    #expect(!latencyRequest.isActive)
  }

  @Test("without a latency request there is no low-latency mode")
  func unavailable() throws { #expect(try LowLatencyMode(nil) === nil) }
}
