import ControlClient
import Glibc
import Holder
import Posix
import Routing

/// The change of a mount to the program that is installed now, at the path of the present one.
struct ProgramUpgrade: Sendable {
  /// The path of the program that runs.
  static let path: [UInt8] = {
    let path = (try? readLink(of: "/proc/self/exe")) ?? []
    let suffix = Array(" (deleted)".utf8)
    return path.suffix(suffix.count).elementsEqual(suffix) ? path.dropLast(suffix.count) : path
  }()

  private static func readLink(of path: String) throws(Errno) -> [UInt8] {
    try withCName(Array(path.utf8)) { name throws(Errno) in
      try Descriptor.open(name, [.pathOnly, .noFollow]).linkTarget()
    }
  }

  private let survival: SurvivalMemory
  private let arguments: [[UInt8]]

  init(_ survival: SurvivalMemory, _ plan: MountPlan) {
    self.survival = survival
    arguments = plan.arguments(forSuccessorWith: survival.memory.file.rawValue)
  }

  /// Checks the installed program, and leaves it to the holder. One call at a time.
  /// - Returns: why it cannot go on with the mount.
  @Sendable func refusal() -> String? {
    // Another command was first: the holder may be executing it already.
    if survival.state.candidate != 0 { return nil }
    do throws(Failure) {
      let candidate = try UpgradeCandidate(at: Self.path)
      try candidate.check(arguments)
      survival.state.candidate = candidate.release() + 1
      return nil
    } catch { return error.message }
  }
}

/// `bundlefs upgrade MOUNTPOINT`.
struct UpgradeCommand {
  private let mountPoint: MountPoint
  /// Times 10 ms.
  private static let attempts = 1000

  init(_ arguments: [[UInt8]]) throws(Failure) {
    guard arguments.count == 1 else { throw .usage("'upgrade' needs one MOUNTPOINT") }
    mountPoint = try MountPoint(mounted: arguments[0])
  }

  /// Returns when the installed program answers requests.
  func run() throws(Failure) {
    let path = mountPoint.path.shown
    let before = try counts()
    let refusal = try Failure.naming("\(path): cannot upgrade") { () throws(Errno) in
      try StatusClient.read(.upgrade, at: mountPoint.path)
    }
    if !refusal.isEmpty { throw .failed("\(path): not upgraded: \(refusal.shown.escapingControls)") }
    for _ in 0..<Self.attempts {
      let now = try counts()
      if now.upgrades > before.upgrades { return }
      if now.failures > before.failures { break }
      usleep(10_000)
    }
    throw .failed(
      "\(path): not upgraded: the installed program has not taken over; the former one continues")
  }

  /// How often a program has taken over, and how often one has not.
  private func counts() throws(Failure) -> (upgrades: Int64, failures: Int64) {
    let status = try Failure.naming(mountPoint.path.shown) { () throws(Errno) in
      JSONValue(try StatusClient.read(.json, at: mountPoint.path))
    }
    guard case .integer(let upgrades) = status?["survival"]?["upgrades"],
      case .integer(let failures) = status?["survival"]?["failedUpgrades"]
    else {
      throw .failed("\(mountPoint.path.shown): mounted with 'survive=off'; unmount it and mount it again")
    }
    return (upgrades, failures)
  }
}
