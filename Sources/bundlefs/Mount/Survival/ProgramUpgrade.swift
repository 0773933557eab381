import ControlClient
import Glibc
import Holder
import Posix
import Routing

/// The change of a mount to the program that is installed now, at the path of the present one.
enum ProgramUpgrade {
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

  /// Asks the installed program whether it can go on with the state of this one.
  /// - Returns: why it cannot.
  @Sendable static func refusal() -> String? {
    let version = Array("\(HolderState.currentVersion)".utf8)
    switch runQuietly(String(decoding: path, as: UTF8.self), ["--can-resume"], version) {
    case .succeeded: return nil
    case .notFound: return "\(path.shown) cannot be run"
    case .failed(let reason): return "\(path.shown): \(reason)"
    }
  }

  /// `bundlefs --can-resume VERSION`, by which a running program asks the installed one.
  static func check(_ arguments: [[UInt8]]) throws(Failure) {
    guard arguments.count == 1, arguments[0].shown == "\(HolderState.currentVersion)" else {
      throw .failed("it cannot go on with a mount of this version; unmount it and mount it again")
    }
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
    let before = try upgrades()
    let refusal = try Failure.naming("\(path): cannot upgrade") { () throws(Errno) in
      try StatusClient.read(.upgrade, at: mountPoint.path)
    }
    if !refusal.isEmpty { throw .failed("\(path): not upgraded: \(refusal.shown)") }
    for _ in 0..<Self.attempts {
      if try upgrades() > before { return }
      usleep(10_000)
    }
    throw .failed("\(path): not upgraded; the former program goes on")
  }

  private func upgrades() throws(Failure) -> Int64 {
    let status = try Failure.naming(mountPoint.path.shown) { () throws(Errno) in
      JSONValue(try StatusClient.read(.json, at: mountPoint.path))
    }
    guard case .integer(let upgrades) = status?["survival"]?["upgrades"] else {
      throw .failed("\(mountPoint.path.shown): mounted with 'survive=off'; unmount it and mount it again")
    }
    return upgrades
  }
}
