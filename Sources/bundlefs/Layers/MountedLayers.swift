import ControlClient
import Layers
import Posix
import Routing

/// A layer of a mount, as its daemon describes it.
struct MountedLayer: Equatable {
  enum Kind: String {
    case directory, archive
  }

  /// The absolute path with which it was mounted, as `LaidPath.name`.
  let path: [UInt8]
  /// The path of the folder in the mount at which it is laid, for display; nil for the root.
  let place: String?
  /// The path for display.
  let shown: String
  let kind: Kind
  /// What is wrong with it.
  let problems: [String]
  /// What the user may have meant instead.
  let hint: String?

  /// - Parameter status: an element of `layers` in the status of a mount.
  init?(_ status: JSONValue) {
    guard let shown = status["path"]?.string,
      let path = status["encodedPath"]?.string.flatMap({ PercentCoding.decoded($0) }),
      let kind = status["kind"]?.string.flatMap(Kind.init)
    else { return nil }
    self.shown = shown
    self.path = path
    self.kind = kind
    problems = Self.problems(status)
    hint = status["hint"]?.string
    place = status["place"]?.string
  }

  var laidPath: LaidPath { LaidPath(checked: path) }

  private static func problems(_ status: JSONValue) -> [String] {
    var problems: [String] = []
    if let reason = status["reason"]?.string {
      problems.append(status["absent"] == .boolean(true) ? reason : "cached for 1 s only: \(reason)")
    }
    if let seconds = status["unresponsive"]?.int { problems.append("does not answer, since \(seconds) s") }
    guard let archive = status["archive"] else { return problems }
    if let note = archive["note"]?.string { problems.append("last readable content shown: \(note)") }
    for word in ["skipped", "unreadable"] {
      guard case .array(let groups) = archive[word] else { continue }
      problems += groups.map { "\(word) \($0["count"]?.int ?? 0) (\($0["reason"]?.string ?? "?"))" }
    }
    return problems
  }
}

/// The layers of a mount.
struct MountedLayers: Equatable {
  /// Top first, MAIN last.
  let layers: [MountedLayer]
  /// Whether the topmost one takes the changes of the mount.
  let isWritable: Bool

  /// - Parameter status: the status of a mount.
  init?(_ status: JSONValue) {
    guard case .array(let members) = status["layers"] else { return nil }
    layers = members.compactMap { MountedLayer($0) }
    if layers.isEmpty || layers.count < members.count { return nil }
    isWritable = members[0]["writable"] == .boolean(true)
  }

  /// Asks the mount for its layers.
  init(of mountPoint: MountPoint) throws(Failure) { self = try Self.asked(of: mountPoint).layers }

  /// Asks the mount for its status, which has its layers.
  static func asked(
    of mountPoint: MountPoint
  ) throws(Failure) -> (status: JSONValue, layers: MountedLayers) {
    let status = try Failure.naming(mountPoint.path.shown) { () throws(Errno) in
      JSONValue(try StatusClient.read(.json, of: mountPoint.open([.read, .directory])))
    }
    guard let status, let layers = MountedLayers(status) else {
      throw .failed("\(mountPoint.path.shown): the daemon does not report its layers")
    }
    return (status, layers)
  }

  /// The order of the layers, ready to be changed.
  var order: LayerOrder {
    LayerOrder(layers.map(\.path), isWritable: isWritable, from: LayerName.workingDirectory)
  }
}
