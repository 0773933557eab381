import Posix
import Routing

/// `bundlefs list [--json]`.
struct ListCommand {
  private let isJSON: Bool

  init(_ arguments: [[UInt8]]) throws(Failure) {
    if let other = arguments.first(where: { !$0.elementsEqual("--json".utf8) }) {
      let isOption = other.starts(with: "-".utf8)
      throw isOption
        ? .unknownOption(other.shown, of: "list") : .usage("'list' takes only '--json', not '\(other.shown)'")
    }
    isJSON = !arguments.isEmpty
  }

  func run() throws(Failure) {
    let visible = VisibleMount.all()
    let mounts = Array(zip(visible, MountInspection.all(of: visible)))
    if isJSON { return Terminal.print(Self.json(mounts)) }
    for (mount, inspection) in mounts { Terminal.print(Self.text(mount, inspection)) }
  }

  /// A line for the mount, and an indented one for each layer.
  private static func text(_ mount: VisibleMount, _ inspection: MountInspection) -> String {
    var facts = [inspection.fault ?? "alive"]
    if let user = mount.entry.user { facts.append("user \(user)") }
    if let owner = mount.owner { facts.append("in the namespace of \(owner.process) (\(owner.command))") }
    var lines = ["\(mount.entry.mountPoint.shown)  (\(facts.joined(separator: ", ")))".escapingControls]
    if let layers = inspection.layers {
      lines += LayersOutput(mounted: layers, counts: nil).text.split(separator: "\n").map { "  \($0)" }
    } else {
      lines.append("  MAIN  \(mount.entry.source.shown.escapingControls)")
    }
    return lines.joined(separator: "\n")
  }

  private static func json(_ mounts: [(VisibleMount, MountInspection)]) -> String {
    var json = JSONWriter()
    json.array(mounts, onLines: true) { json, mount in
      json.object { write(mount.0, mount.1, to: &$0) }
    }
    return json.text
  }

  private static func write(
    _ mount: VisibleMount, _ inspection: MountInspection, to json: inout JSONWriter
  ) {
    json.member("mountPoint", mount.entry.mountPoint.shown)
    json.member("encodedMountPoint", PercentCoding.encoded(path: mount.entry.mountPoint))
    json.member("state", inspection.word)
    if case .unknown(let error) = inspection { json.member("reason", "\(error)") }
    json.member("user", mount.entry.user)
    json.member("main", inspection.layers?.layers.last?.shown ?? mount.entry.source.shown)
    json.name("layers")
    if let layers = inspection.layers {
      LayersOutput(mounted: layers, counts: nil).write(to: &json, onLines: false)
    } else {
      json.null()
    }
    json.name("process")
    guard let owner = mount.owner else { return json.null() }
    json.object { json in
      json.member("id", owner.process)
      json.member("command", owner.command)
    }
  }
}
