import Glibc

/// A request to the kernel that idle processors wait awake, so that to wake a thread costs next to nothing
/// (PM QoS, `/dev/cpu_dma_latency`). It holds for the whole machine, and ends with this process at the latest.
///
/// Only where Linux is a guest that halts its idle processors (its cpuidle driver is haltpoll): they leave the guest
/// then, and to call one back takes the host ten times as long as the kernel's own work for it, of the thread that
/// calls, too. Elsewhere idle processors sleep in steps, of which the kernel chooses one that suits.
public final class PromptProcessors: Sendable {
  /// The path of the machine's device.
  public static let device = "/dev/cpu_dma_latency"
  /// Where the kernel tells which driver cares for idle processors.
  public static let driver = "/sys/devices/system/cpu/cpuidle/current_driver"

  private let descriptor: Descriptor?
  private let isHeldNow = Locked(false)

  /// Prepares requests; without the right to make them (root's), or the need for them, they do nothing.
  public init(device: String = device, driver: String = driver) {
    descriptor = Self.isNeeded(by: driver) ? try? Descriptor.open(device, .write) : nil
  }

  private static func isNeeded(by driver: String) -> Bool {
    (try? Descriptor.open(driver, .read).readAll(limit: 64))?.starts(with: "haltpoll\n".utf8) ?? false
  }

  /// Whether idle processors wait awake because of this.
  public var isHeld: Bool { isHeldNow.withLock { $0 } }

  /// Has them wait awake, or no longer.
  public func hold(_ isHeld: Bool) {
    isHeldNow.withLock { isHeldNow in
      if isHeldNow != isHeld, allow(isHeld ? 0 : -1) { isHeldNow = isHeld }
    }
  }

  /// - Parameter latency: microseconds that a processor may take to wake up; -1 for any.
  private func allow(_ latency: Int32) -> Bool {
    switch descriptor {
    case .none: return false
    case .some(let descriptor):
      return withUnsafeBytes(of: latency) { write(descriptor.rawValue, $0.baseAddress, $0.count) == $0.count }
    }
  }
}
