import Glibc
import Posix
import TestSupport
import Testing

/// Files in place of the machine's, which take down what is written.
@Suite struct PromptProcessorsTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func processors(driver: String) throws -> PromptProcessors {
    try (folder / "driver").write(Array(driver.utf8))
    try (folder / "device").write([])
    return PromptProcessors(
      device: String(decoding: (folder / "device").bytes, as: UTF8.self),
      driver: String(decoding: (folder / "driver").bytes, as: UTF8.self))
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
    let processors = try processors(driver: "haltpoll\n")
    #expect(try asked() == [] && !processors.isHeld)
    for isHeld in [false, true, true, false, false, true] {
      processors.hold(isHeld)
      #expect(processors.isHeld == isHeld)
    }
    #expect(try asked() == [0, -1, 0])
  }

  @Test(
    "nothing is asked for where processors do not leave a guest", arguments: ["intel_idle\n", "none\n", ""])
  func elsewhere(driver: String) throws {
    let processors = try processors(driver: driver)
    processors.hold(true)
    #expect(try asked() == [] && !processors.isHeld)
  }

  @Test("without the right to ask, or where nobody can be asked, nothing is held")
  func refused() throws {
    let driver = String(decoding: (folder / "driver").bytes, as: UTF8.self)
    try (folder / "driver").write(Array("haltpoll\n".utf8))
    for device in ["/does not exist", "/dev/full"] {
      let processors = PromptProcessors(device: device, driver: driver)
      processors.hold(true)
      #expect(!processors.isHeld, "\(device)")
    }
  }
}
