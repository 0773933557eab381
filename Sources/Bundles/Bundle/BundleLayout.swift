import Layers
import Posix

/// The layout of a bundle. The main layer, which is the lowest, determines it.
public enum BundleLayout: Sendable, Hashable, CaseIterable {
  /// `Contents/Resources`: macOS applications.
  case contents
  /// `Resources`: frameworks.
  case resources
  /// Resources in the root: iOS applications.
  case flat

  /// The first layout whose resource folder exists in the main layer. The folder may be a symbolic link within
  /// that layer, as in frameworks.
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

  /// The candidate paths of Info.plist: first the path that Foundation uses for the layout, then the others, for
  /// bundles that mix layouts.
  var infoPlistPaths: [[[UInt8]]] {
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
