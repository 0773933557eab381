import ControlClient
import Glibc
import Posix
import Routing

/// What a mount answers about itself within `timeoutMilliseconds`. A child process asks, since a hung mount blocks every
/// process that touches it.
enum MountInspection: Equatable {
  /// With the status in the form that was asked for.
  case alive([UInt8])
  /// The daemon answers, but not with its status: it waits for a layer.
  case stalled
  /// The connection to its daemon is closed.
  case dead
  /// It has not answered within the time limit.
  case unresponsive
  /// Another mount hides it.
  case covered
  /// The caller may not ask it, or it is gone by now.
  case unknown(Errno)

  /// A little less than the two seconds within which commands answer.
  static let timeoutMilliseconds: CInt = 1800

  /// Asks mounts, all at the same time.
  /// - Parameter form: `json` or `text`.
  static func all(
    of mounts: [VisibleMount], _ form: StatusProtocol.Form = .json,
    until deadline: TimeSpec = .monotonic.advanced(byMilliseconds: timeoutMilliseconds)
  ) -> [MountInspection] {
    let questions = mounts.map { mount in
      { (send: ([UInt8]) -> Void) in reply(mount, form, send) }
    }
    return ForkedCall.runAll(until: deadline, questions).map { outcome in
      switch outcome {
      case .success(.returned(let reply)): parse(reply.drop { $0 == answering })
      case .success(.timedOut(let sent)): sent.isEmpty ? .unresponsive : .stalled
      case .success(.failed): .unknown(.ioError)
      case .failure(let error): .unknown(error)
      }
    }
  }

  /// The status that was asked for as JSON; nil without one.
  var status: JSONValue? {
    if case .alive(let text) = self { JSONValue(text) } else { nil }
  }

  /// nil if the daemon does not describe them in this version's words.
  var layers: MountedLayers? { status.flatMap { MountedLayers($0) } }

  /// The word for it in JSON.
  var word: String {
    switch self {
    case .alive, .stalled: "alive"
    case .dead: "dead"
    case .unresponsive: "unresponsive"
    case .covered: "covered"
    case .unknown: "unknown"
    }
  }

  /// Why there is no status; nil if there is one.
  var fault: String? {
    switch self {
    case .alive: nil
    case .stalled: "its daemon answers, but waits for a layer that does not"
    case .dead: "its daemon is dead"
    case .unresponsive: "its daemon does not answer"
    case .covered: "covered by another mount"
    case .unknown(let error): "cannot be asked: \(error)"
    }
  }

  // MARK: - The child's reply: `answering` once the daemon answers; then a byte for the state, and the status or the error
  // number

  private enum Reply: UInt8 { case alive, dead, covered, unknown }

  private static let answering = UInt8.max

  private static func parse(_ reply: ArraySlice<UInt8>) -> MountInspection {
    let rest = Array(reply.dropFirst())
    switch reply.first.flatMap({ Reply(rawValue: $0) }) {
    case .alive: return .alive(rest)
    case .dead: return .dead
    case .covered: return .covered
    default: return .unknown(Errno(rawValue: CInt(rest.shown) ?? EIO))
    }
  }

  private static func reply(
    _ mount: VisibleMount, _ form: StatusProtocol.Form, _ send: ([UInt8]) -> Void
  ) -> [UInt8] {
    do throws(Errno) {
      // The directories above may be accessible to this user only.
      let root = try Descriptor.open(mount.path, [.pathOnly, .directory, .noFollow])
      try becomeOwner(of: mount.entry)
      guard try root.device() == mount.entry.device else { return [Reply.covered.rawValue] }
      let directory = try root.open(".", [.read, .directory])
      // The daemon answers this without a layer.
      _ = try StatusClient.read(.controlName, of: directory)
      send([answering])
      return [Reply.alive.rawValue] + (try StatusClient.read(form, of: directory))
    } catch {
      if error == .socketNotConnected { return [Reply.dead.rawValue] }
      return [Reply.unknown.rawValue] + Array("\(error.rawValue)".utf8)
    }
  }

  /// Without `allow_other` a mount answers only the user that mounted it, and not even root.
  private static func becomeOwner(of entry: MountTableEntry) throws(Errno) {
    guard geteuid() == 0, let user = entry.user, let group = entry.group, user != 0 else { return }
    try ThisProcess.become(user: user, group: group)
  }
}
