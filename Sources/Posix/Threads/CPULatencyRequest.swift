import CLibrary
import Synchronization

/// A PM QoS request for a CPU wake-up latency of 0 (`/dev/cpu_dma_latency`), which keeps idle processors from halting. It
/// affects the whole machine, and ends with the process at the latest.
///
/// Made only where Linux is a guest with the cpuidle driver haltpoll: there a halted processor leaves the guest, and
/// waking it takes the host ten times as long as the kernel's own part. Elsewhere processors have idle states that
/// are cheaper to leave.
public final class CPULatencyRequest: Sendable {
  /// The PM QoS device.
  public static let device = "/dev/cpu_dma_latency"
  /// The file with the name of the cpuidle driver.
  public static let driver = "/sys/devices/system/cpu/cpuidle/current_driver"

  private let descriptor: Locked<Descriptor>
  private let state = Atomic<Bool>(false)

  /// Opens the device; nil if that fails (it is root's) or the driver is not haltpoll.
  public init?(device: String = device, driver: String = driver) {
    let name = try? Descriptor.open(driver, .read).readAll(limit: 64)
    guard name == Array("haltpoll\n".utf8), let descriptor = try? Descriptor.open(device, .write) else {
      return nil
    }
    self.descriptor = Locked(descriptor)
  }

  /// Whether the request is active.
  public var isActive: Bool { state.load(ordering: .relaxed) }

  /// Activates or withdraws the request.
  public func setActive(_ isActive: Bool) {
    descriptor.withLock { descriptor in
      if self.isActive == isActive { return }
      // In microseconds; -1 is no limit.
      let latency: Int32 = isActive ? 0 : -1
      let count = withUnsafeBytes(of: latency) { write(descriptor.rawValue, $0.baseAddress, $0.count) }
      if count > 0 { state.store(isActive, ordering: .relaxed) }
    }
  }
}
