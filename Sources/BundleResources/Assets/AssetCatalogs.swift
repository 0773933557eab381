import Bundles
import Foundation
import Layers
import Posix
import Routing

/// A set of an asset catalog: an image, a colour or data in several variants.
struct AssetSet {
  /// The directory, from the root of the merged view.
  let path: [[UInt8]]
  /// The layer of its Contents.json.
  let layer: Int
  let contents: JSONValue
}

/// Finds sets in the asset catalogs of a bundle that are not compiled: directories `*.xcassets`.
///
/// The catalogs of all layers are merged as other directories are. Of several sets of one name, the topmost layer's counts.
struct AssetCatalogs {
  private let lookup: ResourceLookup

  /// Larger files are no descriptions of sets.
  private static let maxFileSize = 1 << 20
  private static let (maxDepth, maxDirectories) = (16, 4096)

  init(_ lookup: ResourceLookup) { self.lookup = lookup }

  /// - Parameters:
  ///   - name: with those of the namespaces around it, separated by slashes.
  ///   - kind: `imageset`, `colorset` or `dataset`.
  func set(_ name: String, kind: String) throws(Errno) -> AssetSet? {
    let wanted = Array("\(name).\(kind)".utf8)
    var pending = try lookup.list(type: Array("xcassets".utf8)).filter { $0.kind == .directory }
      .map { (path: [$0.path[$0.path.count - 1]], namespace: [UInt8]()) }
    var seen: Set<[[UInt8]]> = []
    var best: AssetSet?
    while let (path, namespace) = pending.popLast() {
      guard path.count <= Self.maxDepth, seen.count < Self.maxDirectories, seen.insert(path).inserted else {
        continue
      }
      for entry in try lookup.list(in: path) where entry.kind == .directory {
        let name = entry.path[entry.path.count - 1]
        if namespace + name == wanted, let found = try assetSet(at: path + [name]) {
          if best.map({ found.layer < $0.layer }) ?? true { best = found }
        } else if !name.contains(UInt8(ascii: ".")) {
          let inner = try isNamespace(path + [name]) ? namespace + name + [UInt8(ascii: "/")] : namespace
          pending.append((path + [name], inner))
        }
      }
    }
    return best
  }

  private func isNamespace(_ path: [[UInt8]]) throws(Errno) -> Bool {
    guard case .boolean(true)? = try assetSet(at: path)?.contents["properties"]?["provides-namespace"] else {
      return false
    }
    return true
  }

  private func assetSet(at path: [[UInt8]]) throws(Errno) -> AssetSet? {
    let found = try lookup.find(path + [Array("Contents.json".utf8)])
    guard let found, found.attributes.isRegular, found.attributes.size <= UInt64(Self.maxFileSize),
      let text = try? found.open().readAll(limit: Self.maxFileSize), let contents = JSONValue(text)
    else { return nil }
    return AssetSet(path: found.path.dropLast(), layer: found.layer, contents: contents)
  }
}

extension AssetSet {
  /// The variants that Contents.json lists.
  func variants(_ name: String) -> [JSONValue] {
    guard case .array(let variants)? = contents[name] else { return [] }
    return variants
  }
}

extension JSONValue {
  /// How well a variant suits an idiom, the less the better.
  func idiomRank(_ idiom: ResourceOptions.Idiom?) -> Int {
    let own = idiom.map { $0 == .pad ? "ipad" : "iphone" } ?? "mac"
    let idiom = self["idiom"]?.string ?? "universal"
    return idiom == own ? (own == "mac" ? 1 : 0) : idiom == "universal" ? (own == "mac" ? 0 : 1) : 2
  }

  /// Whether a variant is for dark surroundings; nil if it is for another appearance, such as more contrast.
  var isDark: Bool? {
    guard case .array(let appearances)? = self["appearances"] else { return false }
    let isLuminosity = appearances.allSatisfy { $0["appearance"]?.string == "luminosity" }
    guard isLuminosity, appearances.count <= 1 else { return nil }
    return appearances.first?["value"]?.string == "dark"
  }
}
