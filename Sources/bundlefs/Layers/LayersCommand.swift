import Glibc
import Posix

/// `bundlefs layers MOUNTPOINT`: lists the layers of a mount, or changes them.
struct LayersCommand {
  private let mountPoint: MountPoint
  private let action: LayersArguments.Action

  init(_ arguments: [[UInt8]]) throws(Failure) {
    let arguments = try LayersArguments(arguments)
    action = arguments.action
    mountPoint = try MountPoint(mounted: arguments.mountPoint)
  }

  func run() throws(Failure) {
    switch action {
    case .list(let isJSON, let counts): try list(isJSON: isJSON, counts: counts)
    case .profiles(let isJSON):
      let list = try ProfileList(MountedLayers(of: mountPoint))
      if isJSON { Terminal.print(list.json) } else { Terminal.printLines(list.text) }
    case .save(let name): try MountProfile(mountPoint).save(as: name)
    case .load(let name):
      if let note = try MountProfile(mountPoint).load(name).note { Terminal.printError(note) }
    case .set, .add, .remove, .move: try change()
    }
  }

  private func list(isJSON: Bool, counts: Bool) throws(Failure) {
    signal(SIGPIPE, SIG_DFL)
    let mounted = try MountedLayers(of: mountPoint)
    let counted = counts ? try NameCounts(of: mountPoint, mounted) : nil
    let output = LayersOutput(mounted: mounted, counts: counted)
    Terminal.print(isJSON ? output.json : output.text)
  }

  /// Returns when the new layers are visible everywhere.
  private func change() throws(Failure) {
    do throws(Failure) {
      try mountPoint.changeLayers { order throws(Failure) in
        switch action {
        case .list, .profiles, .save, .load: return
        case .set(let layers): try order.set(layers)
        case .add(let layers, let position): try order.add(layers, position)
        case .remove(let layers): try order.remove(layers)
        case .move(let layer, let position): try order.move(layer, position)
        }
      }
    } catch {
      guard case .set(let layers) = action, let hint = UnescapedSeparator().hint(inLayers: layers) else {
        throw error
      }
      throw .failed("\(error.message); \(hint)")
    }
  }
}
