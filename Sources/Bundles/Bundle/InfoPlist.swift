import Layers
import Posix

/// The keys of a bundle's Info.plist that bundlefs uses.
public struct InfoPlist: Sendable, Hashable {
  /// CFBundleIdentifier.
  public var identifier: String?
  /// CFBundleDevelopmentRegion: the bundle's native language.
  public var developmentRegion: String?

  /// Creates a value from known keys.
  public init(identifier: String? = nil, developmentRegion: String? = nil) {
    self.identifier = identifier
    self.developmentRegion = developmentRegion
  }

  /// Reads Info.plist through the merged view, so that a substitution's file wins.
  ///
  /// A file that is malformed, larger than 4 MiB or not readable is treated as absent.
  public init(of stack: LayerStack) throws(Errno) {
    self = try InfoPlistCache().infoPlist(of: stack, layout: BundleLayout(of: stack))
  }
}
