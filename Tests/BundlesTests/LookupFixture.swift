import Layers
import Posix
import TestSupport
import Testing

@testable import Bundles

/// Layers in a temporary folder, described by a list of entries: `0 fr.lproj/a.txt` is a file in the top layer, `1 D/`
/// a folder in the next, `1 a -> b` a symbolic link, `0 a !` an overlayfs whiteout.
struct LookupFixture {
  let folder = try? TemporaryFolder()
  let stack: LayerStack

  init(_ entries: [String], layers count: Int = 2) throws {
    guard let folder else { throw TestFailure("no temporary folder") }
    for layer in 0..<count { _ = try folder.folder(ByteString("\(layer)")) }
    for entry in entries { try Self.make(ByteString(entry), in: folder.path) }
    stack = LayerStack(
      layers: try (0..<count).map { layer in
        try DirectoryLayer(path: (folder / ByteString("\(layer)")).bytes, index: layer, covered: nil)
      })
  }

  /// The path of a layer on disk.
  func path(_ layer: Int) throws -> ByteString {
    guard let folder else { throw TestFailure("no temporary folder") }
    return folder / ByteString("\(layer)")
  }

  private static func make(_ entry: ByteString, in folder: ByteString) throws {
    let words = entry.text.split(separator: " ")
    let path = folder / ByteString(String(words[0])) / ByteString(String(words[1]))
    if words.count == 2, words[1].hasSuffix("/") {
      return try ByteString(Array(path.bytes.dropLast())).makeDirectories()
    }
    try path.parent.makeDirectories()
    switch words.dropFirst(2).first {
    case "->": try path.makeLink(to: ByteString(String(words[3])))
    case "!": try path.makeWhiteout()
    default: try path.write(entry.bytes)
    }
  }
}

/// A lookup and its expected result: `LAYER PATH [LOCALIZATION]`, or nil for "not found".
struct Case: CustomTestStringConvertible {
  let entries: [String]
  let path: String
  let expected: String?
  var options = ResourceOptions(languages: [])
  var localization: String?

  init(
    _ entries: [String], _ path: String, _ expected: String?, languages: String = "", scale: Int? = nil,
    idiom: ResourceOptions.Idiom? = nil, only localization: String? = nil
  ) {
    self.entries = entries
    self.path = path
    self.expected = expected
    self.localization = localization
    options = ResourceOptions(languages: names(languages, ":"), scale: scale, idiom: idiom)
  }

  var testDescription: String {
    "\(path) of \(entries.joined(separator: ", ")) [\(options.languages ?? [])]"
  }

  /// The result of the lookup in the format of `expected`.
  func result() throws -> String? {
    let layers = 1 + (entries.compactMap { $0.first?.wholeNumberValue }.max() ?? 0)
    let fixture = try LookupFixture(entries, layers: max(2, layers))
    let lookup = ResourceLookup(stack: fixture.stack, options: options)
    return try lookup.find(names(path, "/"), localization: localization.map { Array($0.utf8) })?.summary
  }
}

/// Splits a text.
func names(_ text: String, _ separator: Character) -> [[UInt8]] {
  text.split(separator: separator).map { Array($0.utf8) }
}

func text(_ names: [[UInt8]]) -> String {
  names.map { String(decoding: $0, as: UTF8.self) }.joined(separator: "/")
}

extension FoundResource {
  /// `LAYER PATH [LOCALIZATION]`.
  var summary: String {
    "\(layer) \(text(path))" + (localization.map { " " + String(decoding: $0, as: UTF8.self) } ?? "")
  }
}
