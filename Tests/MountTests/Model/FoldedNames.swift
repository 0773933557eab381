import TestSupport

/// Names where case does not count, by table: what the code under test computes is written down here for a few words.
enum FoldedNames {
  /// The spellings of each name.
  static let spellings: [[ByteString]] = [
    ["Readme", "README", "readme", "ReadMe"],
    ["Textures", "textures", "TEXTURES"],
    ["Data.Bin", "data.bin", "DATA.bin"],
    // Composed and decomposed.
    ["\u{e9}.txt", "e\u{301}.txt", "\u{c9}.TXT", "E\u{301}.txt"],
    ["u\u{308}b\u{e9}r", "\u{dc}BE\u{301}R", "\u{fc}Be\u{301}r"],
    ["Stra\u{df}e", "STRASSE", "strasse", "STRA\u{1e9e}E"],
    // The final sigma.
    [
      "\u{3a3}\u{3af}\u{3c3}\u{3c5}\u{3c6}\u{3bf}\u{3c2}",
      "\u{3a3}\u{38a}\u{3a3}\u{3a5}\u{3a6}\u{39f}\u{3a3}",
      "\u{3c3}\u{3b9}\u{301}\u{3c3}\u{3c5}\u{3c6}\u{3bf}\u{3c3}",
    ],
    // An iota below and an accent, in both orders.
    ["\u{1fb4}", "\u{3b1}\u{301}\u{345}", "\u{3b1}\u{345}\u{301}", "\u{386}\u{3b9}"],
    // The Turkish letters: the one without a dot is none of the others.
    ["I", "i"], ["\u{131}"], ["\u{130}", "i\u{307}", "I\u{307}"],
    // The sign for kelvin, a ligature, three cases of one letter.
    ["k", "K", "\u{212a}"], ["\u{fb01}x", "FIX", "fiX"], ["\u{1c5}a", "\u{1c6}A", "\u{1c4}a"],
    // Not UTF-8: compared as bytes.
    [ByteString([0x41, 0xff])], [ByteString([0x61, 0xff])],
    [ByteString([UInt8](repeating: 0x6c, count: 255)), ByteString([UInt8](repeating: 0x4c, count: 255))],
  ]

  private static let numbers = Dictionary(
    uniqueKeysWithValues: spellings.enumerated().flatMap { number, names in names.map { ($0, number) } })

  /// Equal for the spellings of one name; another name is its own.
  static func key(of name: ByteString) -> ByteString { numbers[name].map { ByteString("#\($0)") } ?? name }

  /// The spellings of a few names.
  static func choose(using random: inout SplitMix64) -> [ByteString] {
    var names = spellings
    names.shuffle(using: &random)
    return names.prefix(random.number(4...6)).flatMap(\.self)
  }
}

extension MergedDirectory {
  /// As `lookup`, where case does not count. In each layer the entry of the given spelling comes first, then the first
  /// by bytes; a whiteout hides the layers below its own. Directories of a layer that are one name are all merged.
  func foldedLookup(_ name: ByteString) -> MergedEntry? {
    if name.hasPrefix(".wh.") { return nil }
    let key = FoldedNames.key(of: name)
    var found: [Part] = []
    for twins in layersOfParts {
      let entries = spellings(of: key, in: twins, first: name)
      switch entries.first.flatMap({ $0.part.directory.entries[$0.name] }) {
      case .directory?:
        let directories = entries.compactMap { entry -> Part? in
          guard case .directory(let directory)? = entry.part.directory.entries[entry.name] else { return nil }
          return Part(layer: entry.part.layer, directory: directory, path: entry.part.path + [entry.name])
        }
        found += directories
        if directories.contains(where: \.directory.isOpaque) { return directory(key, found) }
      case .file(let index)?:
        return found.isEmpty ? .file(layer: twins[0].layer, index: index) : directory(key, found)
      case nil: break
      }
      if twins.contains(where: { hides(key, in: $0) }) { break }
    }
    return found.isEmpty ? nil : directory(key, found)
  }

  /// The spelling of the lowest layer that has the entry, and no whiteout above it.
  var foldedNames: Set<ByteString> {
    var shown: [ByteString: ByteString] = [:]
    var hidden: Set<ByteString> = []
    for twins in layersOfParts {
      let keys = Set(twins.flatMap { $0.directory.entries.keys.map(markedKey) })
      for key in keys.subtracting(hidden) {
        if let first = spellings(of: key, in: twins, first: nil).first { shown[key] = first.name }
      }
      hidden.formUnion(keys.filter { key in twins.contains { hides(key, in: $0) } })
    }
    return Set(shown.values)
  }

  /// The parts by layer, the topmost layer first.
  private var layersOfParts: [[Part]] {
    parts.reduce(into: []) { layers, part in
      if layers.last?.last?.layer == part.layer {
        layers[layers.count - 1].append(part)
      } else {
        layers.append([part])
      }
    }
  }

  /// A layer's entries that are a name: the one of a spelling first, the others by bytes, and those of one spelling in the order
  /// of the parts.
  private func spellings(
    of key: ByteString, in twins: [Part], first: ByteString?
  ) -> [(part: Part, name: ByteString)] {
    let entries = twins.enumerated().flatMap { place, part in
      spellings(of: key, in: part).map { (part: part, name: $0, place: place) }
    }
    return entries.sorted { left, right in
      if (left.name == first) != (right.name == first) { return left.name == first }
      return (left.name, left.place) < (right.name, right.place)
    }.map { ($0.part, $0.name) }
  }

  /// The spellings of a name in a layer that are no whiteouts, sorted by bytes.
  private func spellings(of key: ByteString, in part: Part) -> [ByteString] {
    part.directory.entries.keys.filter {
      !$0.hasPrefix(".wh.") && FoldedNames.key(of: $0) == key && !isWhiteout($0, in: part)
    }.sorted()
  }

  private func hides(_ key: ByteString, in part: Part) -> Bool {
    part.directory.entries.keys.contains { name in
      markedKey(name) == key && (name.hasPrefix(".wh.") || isWhiteout(name, in: part))
    }
  }

  /// The key of an entry's name, or of the name that its marker hides.
  private func markedKey(_ name: ByteString) -> ByteString {
    FoldedNames.key(of: name.hasPrefix(".wh.") ? ByteString(Array(name.bytes.dropFirst(4))) : name)
  }

  private func isWhiteout(_ name: ByteString, in part: Part) -> Bool {
    guard case .file(let index)? = part.directory.entries[name] else { return false }
    return stack[part.layer].files[index].form.isOverlayWhiteout
  }
}
