import Layers
import Posix

/// How a bundle is laid out, by what exists in its main layer: the lowest.
public enum BundleLayout: Sendable, Hashable, CaseIterable {
  /// `Contents/Resources`, as applications of macOS have it.
  case contents
  /// `Resources`, as frameworks have it.
  case resources
  /// No folder of its own: the resources lie in the root, as in applications of iOS.
  case flat

  /// The layout of a bundle as it is now: the first whose resource folder the main layer has, by itself.
  ///
  /// A folder may be a symbolic link to another one within that layer, as in frameworks.
  public init(of stack: LayerStack) throws(Errno) {
    let main = try MergedPath(rootOf: LayerStack(layers: [stack.layers[stack.layers.count - 1]]))
    for layout in [BundleLayout.contents, .resources]
    where try main.directory(at: layout.resourceFolder) != nil {
      self = layout
      return
    }
    self = .flat
  }

  /// The path of the resource folder from the bundle's root.
  public var resourceFolder: [[UInt8]] {
    switch self {
    case .contents: [Array("Contents".utf8), Array("Resources".utf8)]
    case .resources: [Array("Resources".utf8)]
    case .flat: []
    }
  }

  /// Where Info.plist may be, most likely first: where Foundation looks for it in this layout
  /// (`Contents/Info.plist`, `Resources/Info.plist`, `Info.plist`), then in the other places, for bundles
  /// that are not wholly of one layout.
  var informationPaths: [[[UInt8]]] {
    let name = Array("Info.plist".utf8)
    let contents = [Array("Contents".utf8), name]
    let resources = [Array("Resources".utf8), name]
    switch self {
    case .contents: return [contents, resources, [name]]
    case .resources: return [resources, [name], contents]
    case .flat: return [[name], contents, resources]
    }
  }
}
