import ControlClient
import Glibc
import Posix
import Routing

/// What a mount answers about itself. A child process asks, since a hung mount blocks every process that touches it.
enum MountInspection {
  /// nil for the layers if the daemon does not describe them in this version's words.
  case alive(MountedLayers?)
  /// The connection to its daemon is closed.
  case dead
  /// It has not answered within the time limit.
  case unresponsive
  /// Another mount hides it.
  case covered
  /// The caller may not ask it, or it is gone by now: why.
  case unknown(String)

  private static let timeoutMilliseconds: CInt = 2000

  init(of mount: VisibleMount) {
    do throws(Errno) {
      switch try ForkedCall.run(timeoutMilliseconds: Self.timeoutMilliseconds, { Self.reply(mount) }) {
      case .returned(let reply): self = Self.parse(reply)
      case .timedOut: self = .unresponsive
      case .failed: self = .unknown("the query failed")
      }
    } catch {
      self = .unknown("\(error)")
    }
  }

  /// The word for it in JSON.
  var word: String {
    switch self {
    case .alive: "alive"
    case .dead: "dead"
    case .unresponsive: "unresponsive"
    case .covered: "covered"
    case .unknown: "unknown"
    }
  }

  var layers: MountedLayers? {
    if case .alive(let layers) = self { layers } else { nil }
  }

  // MARK: - The child's reply: a byte for the state, then the status or the reason

  private enum Reply: UInt8 { case alive, dead, covered, unknown }

  private static func parse(_ reply: [UInt8]) -> MountInspection {
    let text = Array(reply.dropFirst())
    switch reply.first.flatMap({ Reply(rawValue: $0) }) {
    case .alive: return .alive(JSONValue(text).flatMap { MountedLayers($0) })
    case .dead: return .dead
    case .covered: return .covered
    default: return .unknown(text.shown)
    }
  }

  private static func reply(_ mount: VisibleMount) -> [UInt8] {
    do throws(Errno) {
      // The directories above may be accessible to this user only.
      let root = try Descriptor.open(mount.path, [.pathOnly, .directory, .noFollow])
      try becomeOwner(of: mount.entry)
      guard try root.device() == mount.entry.device else { return [Reply.covered.rawValue] }
      // The kernel never answers it from its caches.
      _ = try root.statvfs()
      let directory = try root.open(".", [.read, .directory])
      return [Reply.alive.rawValue] + (try StatusClient.read(.json, of: directory))
    } catch {
      if error == .socketNotConnected { return [Reply.dead.rawValue] }
      return [Reply.unknown.rawValue] + Array("\(error)".utf8)
    }
  }

  /// Without `allow_other` a mount answers only the user that mounted it, and not even root.
  private static func becomeOwner(of entry: MountTableEntry) throws(Errno) {
    guard geteuid() == 0, let user = entry.user, let group = entry.group, user != 0 else { return }
    try ThisProcess.become(user: user, group: group)
  }
}
