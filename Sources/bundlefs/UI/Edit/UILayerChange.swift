import Posix
import WebServer

/// Sets the substitutions of a mount.
struct UILayerChange {
  private let mountPoint: MountPoint

  init(_ mountPoint: MountPoint) { self.mountPoint = mountPoint }

  /// - Parameters:
  ///   - layers: absolute paths, top first, without MAIN.
  ///   - label: nil for the usual one.
  func set(_ layers: [[UInt8]], label: String? = nil) throws(WebError) -> UIEdit {
    for layer in layers where layer.first != UInt8(ascii: "/") || layer.contains(0) {
      throw WebError(400, "\(layer.shown): the path of a layer must be absolute")
    }
    let former = try WebError.from { () throws(Failure) in
      try mountPoint.changeLayers { order throws(Failure) in try order.set(layers) }
    }
    return UIEdit(label: label ?? "Changed the layers", content: .layers(former))
  }
}
