import Bundles
import Foundation
import Posix

extension LayeredBundle: CustomStringConvertible {
  /// The path of ``bundleURL``.
  public var bundlePath: String { bundleURL.path }

  /// The file URL of the main bundle's resource directory; for the bundle of a mount, in the mount. nil for a bundle in an
  /// archive, and while nothing is mounted.
  public var resourceURL: URL? {
    guard let layers = try? layers(), let folder = try? layers.lookup.layout().resourceFolder,
      isMount || !layers.isMainArchive
    else { return nil }
    let names = folder.map { String(decoding: $0, as: UTF8.self) }
    return names.reduce(bundleURL) { $0.appending(path: $1, directoryHint: .isDirectory) }
  }

  /// The path of ``resourceURL``.
  public var resourcePath: String? { resourceURL?.path }

  /// The bundle's path, as in `LayeredBundle </srv/App.app>`.
  public var description: String { "LayeredBundle <\(bundlePath)>" }
}
