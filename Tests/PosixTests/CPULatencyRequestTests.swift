import Glibc
import Posix
import TestSupport
import Testing

/// Files in place of the machine's, which take down what is written.
@Suite struct PromptProcessorsTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private var driver: String { String(decoding: (folder / "driver").bytes, as: UTF8.self) }
  private var device: String { String(decoding: (folder / "device").bytes, as: UTF8.self) }

  private func processors(driver name: String) throws -> CPULatencyRequest? {
    try (folder / "driver").write(name)
    try (folder / "device").write("")
    return CPULatencyRequest(device: device, driver: driver)
  }

  /// The latencies that were asked for, one after the other.
  private func asked() throws -> [Int32] {
    let bytes = try (folder / "device").read()
    return stride(from: 0, to: bytes.count, by: 4).map { place in
      bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: place, as: Int32.self) }
    }
  }

  @Test("idle processors are asked to be awake once, until they need not")
  func holding() throws {
    let processors = try #require(try processors(driver: "haltpoll\n"))
    #expect(try asked() == [] && !processors.isActive)
    for isHeld in [false, true, true, false, false, true] {
      processors.setActive(isHeld)
      #expect(processors.isActive == isHeld)
    }
    #expect(try asked() == [0, -1, 0])
  }

  @Test("nothing is asked for where processors leave no guest", arguments: ["intel_idle\n", "none\n", ""])
  func elsewhere(driver name: String) throws {
    #expect(try processors(driver: name) === nil)
  }

  @Test("without the right to ask, or where nobody answers, nothing is held")
  func refused() throws {
    try (folder / "driver").write("haltpoll\n")
    #expect(CPULatencyRequest(device: "/does not exist", driver: driver) === nil)
    let full = try #require(CPULatencyRequest(device: "/dev/full", driver: driver))
    full.setActive(true)
    #expect(!full.isActive)
  }
}
