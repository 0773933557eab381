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
    guard case .list(let isJSON, let counts) = action else { return try change() }
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
        case .list: return
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
