import Bundles
import Foundation
import Posix

/// An image and the scale for which it was made.
public struct ImageResource: Sendable, Hashable {
  /// The URL of the file, as `LayeredBundle.url(forResource:withExtension:subdirectory:localization:)` returns it.
  public let url: URL
  /// How many pixels are a point, from 1: 2 for `logo@2x.png`.
  public let scale: Int

  /// Creates a value.
  public init(url: URL, scale: Int) { (self.url, self.scale) = (url, scale) }
}

extension LayeredBundle {
  /// Finds an image in its best variant by the scale and the idiom of the options: a file, or else an image set of an asset
  /// catalog (`.xcassets`) that is not compiled. nil if there is none.
  ///
  /// Without a file for the scale, those for lower ones are tried: with the scale 3, `logo@3x.png`, `logo@2x.png`, `logo.png`.
  /// - Parameter name: the name with the extension, or without that of a `png`; of an image set, its name, with those of the
  ///   groups around it that are namespaces (`Icons/logo`).
  public func image(forResource name: String) -> ImageResource? {
    imageFile(name) ?? imageAsset(name)
  }

  /// The URL of an image, which `image(forResource:)` finds.
  public func urlForImageResource(_ name: String) -> URL? { image(forResource: name)?.url }

  private func imageFile(_ name: String) -> ImageResource? {
    let isBare = !(Self.names(name).last ?? []).contains(UInt8(ascii: "."))
    guard let layers = try? layers() else { return nil }
    for name in isBare ? [name, name + ".png"] : [name] {
      guard let found = try? layers.lookup.find(Self.names(name)), found.attributes.isRegular else {
        continue
      }
      let url = url(of: found.path, layer: found.layer, isDirectory: false, in: layers)
      return url.map { ImageResource(url: $0, scale: found.imageScale) }
    }
    return nil
  }
}
