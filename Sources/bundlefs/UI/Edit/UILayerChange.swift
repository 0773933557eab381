import Posix
import WebServer

/// Sets the substitutions of a mount.
struct UILayerChange {
  private let mountPoint: MountPoint

  init(_ mountPoint: MountPoint) { self.mountPoint = mountPoint }

  /// - Parameters:
  ///   - layers: absolute paths, top first, without MAIN.
  ///   - expected: what the present ones must be; nil for any.
  ///   - label: nil for the usual one.
  /// - Throws: 409 if others are present.
  func set(
    _ layers: [[UInt8]], insteadOf expected: [[UInt8]]? = nil, label: String? = nil
  ) throws(WebError) -> UIEdit {
    for layer in layers where layer.first != UInt8(ascii: "/") || layer.contains(0) {
      throw WebError(400, "\(layer.shown): the path of a layer must be absolute")
    }
    var set: [[UInt8]] = []
    let former = try WebError.from { () throws(Failure) in
      try mountPoint.changeLayers { order throws(Failure) in
        if let expected, order.substitutions != expected {
          throw .failed("the layers have been changed since; set them instead")
        }
        try order.set(layers)
        set = order.substitutions
      }
    }
    return UIEdit(label: label ?? "Changed the layers", content: .layers(former: former, set: set))
  }
}
