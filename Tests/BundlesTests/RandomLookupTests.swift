import Layers
import Posix
import TestSupport
import Testing

@testable import Bundles

/// Compares lookups in random bundles with a direct implementation of the rules: each candidate, layer and folder.
@Suite struct RandomLookupTests {
  private static let folders = ["", "fr.lproj/", "en.lproj/", "Base.lproj/", "pt.lproj/"]
  private static let leaves = [
    "a", "i.png", "i@2x.png", "i~ipad.png", "i@2x~ipad.png", "i_2only_@2x.png", "i",
  ]
  private static let languages = ["fr", "pt-BR", "en"]

  private static func entries(_ random: inout SplitMix64, layers: Int, root: String) -> [String] {
    var entries = ["\(layers - 1) \(root)fr.lproj/a"]
    for layer in 0..<layers {
      for _ in 0..<Int.random(in: 0..<8, using: &random) {
        let mark = ["", "", "", "", ".wh."].randomElement(using: &random) ?? ""
        let folder = folders.randomElement(using: &random) ?? ""
        let deep = Bool.random(using: &random) ? "D/" : ""
        let leaf = leaves.randomElement(using: &random) ?? ""
        let whole = ["\(folder)\(deep)\(mark)\(leaf)", "\(folder).wh.D", "\(folder)D/.wh..wh..opq"]
        entries.append("\(layer) \(root)\(whole[[0, 0, 0, 0, 1, 2].randomElement(using: &random) ?? 0])")
      }
    }
    return entries
  }

  /// A model of the lookup, based on paths.
  private final class Model {
    let stack: LayerStack
    let root: String
    private var folders: [String: MergedDirectory?] = [:]

    init(_ stack: LayerStack, root: String) {
      self.stack = stack
      self.root = root
    }

    /// The topmost layer of an entry.
    func layer(of name: [UInt8], in folder: String) -> Int? {
      guard let directory = directory(folder) else { return nil }
      switch try? withCName(name, { name throws(Errno) in try directory.lookup(name) }) {
      case .file(let layer, _): return layer
      case .directory(let directory, _): return directory.top.layer
      case nil: return nil
      }
    }

    private func directory(_ path: String) -> MergedDirectory? {
      if let known = folders[path] { return known }
      let found = try? stack.directory(at: names(path, "/"))
      folders.updateValue(found, forKey: path)
      return found
    }

    func expected(_ path: String, _ options: ResourceOptions) -> String? {
      let components = names(path, "/")
      let below = path.contains("/") ? "D/" : ""
      let order = [nil, "fr", "pt-BR", "pt", "en", "Base"] as [String?]
      for candidate in ImageVariants.candidates(for: components[components.count - 1], options: options) {
        let folders = order.map { root + ($0.map { $0 + ".lproj/" } ?? "") + below }
        let layers = folders.map { layer(of: candidate, in: $0) }
        for layer in stack.layers.indices {
          guard let index = layers.firstIndex(of: layer) else { continue }
          return "\(layer) \(folders[index])\(text([candidate]))" + (order[index].map { " " + $0 } ?? "")
        }
      }
      return nil
    }
  }

  @Test("the lookup agrees with the model", arguments: [UInt64](1...24))
  func search(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    let layers = Int.random(in: 1...4, using: &random)
    let root = ["", "Resources/", "Contents/Resources/"].randomElement(using: &random) ?? ""
    let entries = Self.entries(&random, layers: layers, root: root)
    let fixture = try LookupFixture(entries, layers: layers)
    let model = Model(fixture.stack, root: root)
    for options in [
      ResourceOptions(), ResourceOptions(scale: 2), ResourceOptions(idiom: .pad),
      ResourceOptions(scale: 2, idiom: .pad),
    ] {
      var options = options
      options.languages = Self.languages.map { Array($0.utf8) }
      let lookup = ResourceLookup(stack: fixture.stack, options: options)
      for path in Self.leaves + Self.leaves.map({ "D/" + $0 }) + ["D", "D/x", "x"] {
        let (found, expected) = (try lookup.find(names(path, "/")), model.expected(path, options))
        if found?.summary == expected { continue }
        Issue.record("\(path) of \(entries): \(found?.summary ?? "nothing") for \(expected ?? "nothing")")
      }
    }
  }

  @Test("names of arbitrary bytes never trap", arguments: [UInt64](1...4))
  func bytes(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    let fixture = try LookupFixture(["1 a.png", "1 fr.lproj/b"])
    let options = ResourceOptions(
      languages: (0..<5).map { _ in Self.name(&random) }, scale: Int.random(in: 0...4, using: &random))
    let lookup = ResourceLookup(stack: fixture.stack, options: options)
    for _ in 0..<300 {
      let path = (0..<Int.random(in: 0...3, using: &random)).map { _ in Self.name(&random) }
      let localization = Bool.random(using: &random) ? Self.name(&random) : nil
      _ = try lookup.find(path, localization: localization)
      _ = try lookup.list(type: path.last, in: Array(path.dropLast()), localization: localization)
      _ = try? ResourceURL(host: nil, segments: path, localization: localization)
    }
  }

  private static func name(_ random: inout SplitMix64) -> [UInt8] {
    let alphabet = Array("ab./-_~@x%\0".utf8) + [0xFF, 0x80]
    let count = [0, 1, 2, 3, 8, 254, 255, 256, 5000].randomElement(using: &random) ?? 0
    return (0..<count).map { _ in alphabet.randomElement(using: &random) ?? 0 }
  }
}
