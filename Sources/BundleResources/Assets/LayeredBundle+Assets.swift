import Bundles
import Foundation
import Posix
import Routing

extension LayeredBundle {
  /// Finds a colour in the asset catalogs (`.xcassets`) that are not compiled; nil if there is none, or if its description is
  /// malformed. Each call reads the catalogs.
  /// - Parameters:
  ///   - name: the name of the colour set, with those of the groups around it that are namespaces (`Brand/accent`).
  ///   - isDark: whether the colour is for dark surroundings. The one for all stands in for a missing one.
  public func color(named name: String, isDark: Bool = false) -> ColorResource? {
    guard let layers = try? layers(),
      let found = try? AssetCatalogs(layers.lookup).set(name, kind: "colorset")
    else { return nil }
    let idiom = layers.lookup.options.idiom
    func rank(_ variant: JSONValue) -> (Int, Int) {
      (variant.isDark == isDark ? 0 : variant.isDark == false ? 1 : 2, variant.idiomRank(idiom))
    }
    let best = found.variants("colors").filter { $0["color"] != nil }.min { rank($0) < rank($1) }
    return best?["color"].flatMap(ColorResource.init)
  }

  /// Finds a file in the data sets of asset catalogs (`.xcassets`) that are not compiled; nil if there is none. Each call reads
  /// the catalogs.
  /// - Parameter name: the name of the data set, with those of the groups around it that are namespaces.
  public func url(forDataAsset name: String) -> URL? {
    guard let layers = try? layers(), let found = try? AssetCatalogs(layers.lookup).set(name, kind: "dataset")
    else { return nil }
    let idiom = layers.lookup.options.idiom
    let best = found.variants("data").filter { $0["filename"]?.string != nil }
      .min { $0.idiomRank(idiom) < $1.idiomRank(idiom) }
    return best.flatMap { url(of: $0, in: found, layers) }
  }

  func imageAsset(_ name: String) -> ImageResource? {
    guard let layers = try? layers(),
      let found = try? AssetCatalogs(layers.lookup).set(name, kind: "imageset")
    else { return nil }
    let options = layers.lookup.options
    func rank(_ variant: JSONValue) -> (Int, Int, Int) {
      let appearance = variant.isDark == false ? 0 : 1
      return (appearance, variant.idiomRank(options.idiom), variant.scaleRank(options.scale ?? 1))
    }
    let best = found.variants("images").filter { $0["filename"]?.string != nil }.min { rank($0) < rank($1) }
    return best.flatMap { variant in
      url(of: variant, in: found, layers).map { ImageResource(url: $0, scale: variant.imageScale ?? 1) }
    }
  }

  private func url(of variant: JSONValue, in set: AssetSet, _ layers: LayerReader) -> URL? {
    guard let name = variant["filename"]?.string.map({ Array($0.utf8) }), !name.contains(UInt8(ascii: "/")),
      let file = try? layers.lookup.resource(at: set.path + [name]), file.attributes.isRegular
    else { return nil }
    return url(of: file.path, layer: file.layer, isDirectory: false, in: layers)
  }
}

extension JSONValue {
  /// The scale of an image; nil for one that suits all.
  fileprivate var imageScale: Int? {
    guard let text = self["scale"]?.string, text.hasSuffix("x"), let scale = Int(text.dropLast()), scale > 0
    else { return nil }
    return scale
  }

  /// How well an image suits a scale, the less the better: its own, then lower ones, then higher ones.
  fileprivate func scaleRank(_ wanted: Int) -> Int {
    guard let scale = imageScale, scale != wanted else { return 0 }
    return scale < wanted ? wanted - scale : Int.max / 2 + min(scale, Int.max / 4)
  }
}
