import Glibc
import Posix
import TestSupport
import Testing

/// Regular files replace the device, whose content is then the writes, and the driver's name.
@Suite struct CPULatencyRequestTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private var driver: String { String(decoding: (folder / "driver").bytes, as: UTF8.self) }
  private var device: String { String(decoding: (folder / "device").bytes, as: UTF8.self) }

  private func request(driver name: String) throws -> CPULatencyRequest? {
    try (folder / "driver").write(name)
    try (folder / "device").write("")
    return CPULatencyRequest(device: device, driver: driver)
  }

  /// The latencies written to the device.
  private func written() throws -> [Int32] {
    let bytes = try (folder / "device").read()
    return stride(from: 0, to: bytes.count, by: 4).map { offset in
      bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset, as: Int32.self) }
    }
  }

  @Test("only changes of the state are written")
  func changes() throws {
    let request = try #require(try request(driver: "haltpoll\n"))
    #expect(try written() == [] && !request.isActive)
    for isActive in [false, true, true, false, false, true] {
      request.setActive(isActive)
      #expect(request.isActive == isActive)
    }
    #expect(try written() == [0, -1, 0])
  }

  @Test("there is no request with another cpuidle driver", arguments: ["intel_idle\n", "none\n", ""])
  func otherDriver(driver name: String) throws {
    #expect(try request(driver: name) === nil)
  }

  @Test("a failed write leaves the request inactive, and a missing device is no request")
  func refused() throws {
    try (folder / "driver").write("haltpoll\n")
    #expect(CPULatencyRequest(device: "/does not exist", driver: driver) === nil)
    let full = try #require(CPULatencyRequest(device: "/dev/full", driver: driver))
    full.setActive(true)
    #expect(!full.isActive)
  }
}
