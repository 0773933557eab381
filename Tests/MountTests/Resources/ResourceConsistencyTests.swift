import Bundles
import FoundationEssentials
import Layers
import Posix
import TestSupport
import Testing

/// Random bundles and changes: the control file, paths below `rsrc:` and `ResourceLookup` on the layers agree on every
/// name.
extension MountTests {
  @Suite struct ResourceConsistencyTests {
    private static let folders = [
      "", "fr.lproj/", "en.lproj/", "Base.lproj/", "D/", "fr.lproj/D/", "en.lproj/D/",
    ]
    private static let names = [
      "a.txt", "i.png", "i@2x.png", "i~ipad.png", "i@2x~ipad.png", "i", "D", "né.txt",
    ]

    /// Makes one change to a layer: replaces or removes a file, or adds or removes a whiteout.
    private func change(_ layer: ByteString, _ random: inout SplitMix64, number: Int) throws {
      let folder = Self.folders.randomElement(using: &random) ?? ""
      let name = Self.names.randomElement(using: &random) ?? ""
      let path = layer / ByteString(folder + name)
      // Does nothing if a file is in the way.
      guard (try? path.parent.makeDirectories()) != nil else { return }
      switch Int.random(in: 0..<8, using: &random) {
      case 0, 1: try? path.remove()
      case 2: try? (path.parent / ByteString(".wh." + name)).write("")
      case 3: try? (path.parent / ByteString(".wh." + name)).remove()
      default: try? path.replace("\(number) \(path.text)")
      }
    }

    private struct Resolution: Decodable {
      var path: String
      var mimeType: String
    }

    private func resolve(_ name: String, _ mount: Mount) throws -> Resolution? {
      let url = name.replacing("é", with: "%C3%A9")
      guard try errorNumber(of: { try mount.writeControl("rsrc:///\(url)\n") }) == nil else { return nil }
      let lines = try mount.routesText().lines
      let last = Data((lines.last ?? "").utf8)
      guard let resolution = try? JSONDecoder().decode(Resolution.self, from: last) else {
        throw TestFailure("\(name): \(lines.suffix(3))")
      }
      return resolution
    }

    private func compare(_ name: String, _ mount: Mount, _ lookup: ResourceLookup) throws {
      let found = try lookup.find(name.split(separator: "/").map { Array($0.utf8) })
      let resolution = try resolve(name, mount)
      let expected = found.map { String(decoding: Array($0.path.joined(separator: [0x2f])), as: UTF8.self) }
      #expect(resolution?.path == expected, "\(name)")
      let seen = try? (mount.resources / ByteString(name)).status()
      // A path component resolved as a file has no entries.
      let isBelowFile = try name.hasPrefix("D/") && lookup.find([Array("D".utf8)])?.isFile == true
      guard let resolution, let found, !isBelowFile else {
        #expect(seen == nil, "\(name)")
        return
      }
      if found.attributes.isDirectory {
        #expect(seen?.kind == .directory && resolution.mimeType == "inode/directory", "\(name)")
      } else if seen?.kind == .regular {
        let file = mount.point / ByteString(resolution.path)
        #expect(try (mount.resources / ByteString(name)).readText() == file.readText(), "\(name)")
        #expect(try file.status().inode == seen?.inode, "\(name)")
      } else {
        // A folder takes precedence over an image of the same name without extension.
        #expect(found.name != Array(name.utf8) && seen?.kind == .directory, "\(name)")
      }
    }

    @Test(
      "every name resolves the same way through all three interfaces, after each change",
      .timeLimit(.minutes(2)), arguments: [UInt64](1...6))
    func resolve(seed: UInt64) throws {
      var random = SplitMix64(seed: seed)
      let fixture = try Fixture(isFilled: false)
      let options: [(ByteString, ResourceOptions)] = [
        ("cache=coherent", ResourceOptions()), ("scale=2", ResourceOptions(scale: 2)),
        ("scale=2,idiom=pad", ResourceOptions(scale: 2, idiom: .pad)),
      ]
      let (option, lookedUp) = options[Int(seed) % options.count]
      let root: ByteString = seed % 2 == 0 ? "Resources" : ""
      let layers = [fixture.substitution / root, fixture.main / root]
      for layer in layers { try layer.makeDirectories() }
      try withMount(fixture.setup("languages=fr:en", option)) { mount in
        var lookedUp = lookedUp
        lookedUp.languages = ["fr", "en"].map { Array($0.utf8) }
        let stack = LayerStack(
          layers: try [fixture.substitution, fixture.main].enumerated().map {
            try DirectoryLayer(path: $1.bytes, index: $0, covered: nil)
          })
        let lookup = ResourceLookup(stack: stack, options: lookedUp)
        for round in 0..<12 {
          for number in 0..<6 {
            let layer = Bool.random(using: &random) ? layers[0] : layers[1]
            try change(layer, &random, number: round * 10 + number)
          }
          try mount.barrier()
          for name in Self.names + Self.names.map({ "D/" + $0 }) { try compare(name, mount, lookup) }
        }
      }
    }
  }
}

extension FoundResource {
  fileprivate var isFile: Bool { !attributes.isDirectory }
}
