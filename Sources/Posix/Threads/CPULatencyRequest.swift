import Glibc
import Synchronization

/// A request to the kernel that idle processors wait awake, so that to wake a thread costs next to nothing
/// (PM QoS, `/dev/cpu_dma_latency`). It holds for the whole machine, and ends with this process at the latest.
///
/// Only where Linux is a guest that halts its idle processors (its cpuidle driver is haltpoll): they leave the guest
/// then, and to call one back takes the host ten times as long as the kernel's own part of it; the thread that calls
/// waits for that, too. Elsewhere idle processors sleep in steps, of which the kernel chooses one that suits.
public final class CPULatencyRequest: Sendable {
  /// The path of the machine's device.
  public static let device = "/dev/cpu_dma_latency"
  /// Where the kernel tells which driver cares for idle processors.
  public static let driver = "/sys/devices/system/cpu/cpuidle/current_driver"

  private let descriptor: Locked<Descriptor>
  private let state = Atomic<Bool>(false)

  /// Prepares requests; nil without the right to make them (root's) or the need for them.
  public init?(device: String = device, driver: String = driver) {
    let name = try? Descriptor.open(driver, .read).readAll(limit: 64)
    guard name == Array("haltpoll\n".utf8), let descriptor = try? Descriptor.open(device, .write) else {
      return nil
    }
    self.descriptor = Locked(descriptor)
  }

  /// Whether idle processors wait awake because of this.
  public var isActive: Bool { state.load(ordering: .relaxed) }

  /// Has them wait awake, or no longer.
  public func setActive(_ isActive: Bool) {
    descriptor.withLock { descriptor in
      if self.isActive == isActive { return }
      // Microseconds that a processor may take to wake up: none, or any.
      let latency: Int32 = isActive ? 0 : -1
      let count = withUnsafeBytes(of: latency) { write(descriptor.rawValue, $0.baseAddress, $0.count) }
      if count > 0 { state.store(isActive, ordering: .relaxed) }
    }
  }
}
