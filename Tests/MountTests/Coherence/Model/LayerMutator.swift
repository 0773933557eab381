import Glibc
import Posix
import TestSupport

/// Changes layers at random, both on disk and in their plans.
struct LayerMutator {
  typealias Path = LiveLayer.Path

  /// A tree outside all layers, which may be moved into one.
  struct OutsideTree {
    var path: ByteString
    var layer: Int
    var files: [PlannedFile]
    var entry: PlannedEntry
  }

  var random: SplitMix64
  var layers: [LiveLayer]
  var hardLinks: HardLinkModel
  var outside: [OutsideTree] = []
  /// The names to choose from.
  let names: [ByteString]
  /// Whether all layers are on one file system, so that rename(2) works between them.
  let onOneFileSystem: Bool
  let limits: StackLimits
  private var counter = 0

  init(
    _ layers: [LiveLayer], names: [ByteString], seed: UInt64, onOneFileSystem: Bool, limits: StackLimits
  ) {
    random = SplitMix64(seed: seed ^ 0x5eed)
    self.layers = layers
    self.names = names
    self.onOneFileSystem = onOneFileSystem
    self.limits = limits
    hardLinks = HardLinkModel()
  }

  var stack: [PlannedLayer] { layers.map(\.plan) }

  /// Makes one change.
  /// - Returns: its description.
  mutating func step() throws -> String {
    for _ in 0..<200 {
      let layer = random.number(0...layers.count - 1)
      if let words = try attempt(layer) { return "layer \(layer): \(words)" }
    }
    throw TestFailure("no change was applicable")
  }

  /// Tries a random kind of change; nil if it does not apply.
  private mutating func attempt(_ layer: Int) throws -> String? {
    switch random.number(0...99) {
    case 0..<12: try changeInPlace(layer)
    case 12..<20: try replace(layer)
    case 20..<29: try create(layer)
    case 29..<36: try unlink(layer)
    case 36..<41: try makeDirectory(layer)
    case 41..<43: try removeEmptyDirectory(layer)
    case 43..<46: try removeTree(layer)
    case 46..<60: try rename(layer)
    case 60..<66: try exchange(layer)
    case 66..<73: try changeAttributes(layer)
    case 73..<76: try makeHardLink(layer)
    case 76..<81: try addWhiteout(layer)
    case 81..<85: try removeWhiteout(layer)
    case 85..<90: try toggleOpaque(layer)
    case 90..<94: try moveIn(layer)
    case 94..<97: try moveOut(layer)
    default: try changeKind(layer)
    }
  }

  // MARK: - Choosing

  mutating func directory(_ layer: Int) -> Path { random.pick(layers[layer].directories) }

  mutating func entry(_ layer: Int, where predicate: (PlannedEntry) -> Bool = { _ in true }) -> Path? {
    let matching = layers[layer].entries.filter { predicate($0.entry) }
    return matching.isEmpty ? nil : random.pick(matching).path
  }

  mutating func file(_ layer: Int, where predicate: (PlannedForm) -> Bool) -> Path? {
    let files = layers[layer].plan.files
    return entry(layer) { entry in
      guard case .file(let index) = entry else { return false }
      return predicate(files[index].form)
    }
  }

  /// A path without an entry.
  mutating func unusedPath(_ layer: Int) -> Path? {
    let directory = directory(layer)
    let plain = random.pick(names)
    let name = plain.count <= 251 && random.percent(6) ? ".wh." + plain : plain
    return layers[layer].entry(directory + [name]) == nil ? directory + [name] : nil
  }

  mutating func content() -> [UInt8] {
    let size = random.percent(2) ? 131_073 : random.pick([0, 1, 7, 100, 511, 4095, 4096, 4097, 9000])
    let first = UInt8(truncatingIfNeeded: random.next())
    return (0..<size).map { first &+ UInt8(truncatingIfNeeded: $0 % 251) }
  }

  /// An unused path outside the layer on its file system.
  mutating func temporaryPath(_ layer: Int) -> ByteString {
    counter += 1
    return layers[layer].aside / ByteString("new-\(counter)")
  }

  // MARK: - Updating the plan

  /// Call this after an entry was added at the path on disk.
  mutating func added(_ path: Path, _ form: PlannedForm, _ layer: Int) throws {
    hardLinks.forget(below: path)
    let status = try layers[layer].disk(path).status()
    let index = layers[layer].add(PlannedFile(form: form, metadata: PlannedMetadata(status)))
    layers[layer].set(.file(index), at: path)
    try layers[layer].refresh(path.dropLast())
  }

  /// Call this before the entry at the path is removed on disk.
  mutating func willRemove(_ path: Path, _ layer: Int) {
    hardLinks.willChangeLinks(below: path, in: layer, layers)
  }

  /// Call this after the entry at the path was removed on disk.
  mutating func removed(_ path: Path, _ layer: Int) throws {
    hardLinks.forget(below: path)
    layers[layer].set(nil, at: path)
    try layers[layer].refresh(path.dropLast())
  }
}

extension LiveLayer {
  mutating func refresh(_ path: ArraySlice<ByteString>) throws { try refresh(Array(path)) }
}

/// A path in a layer, for messages.
func words(_ path: LiveLayer.Path) -> String {
  path.isEmpty ? "the root" : path.map(\.description).joined(separator: "/")
}
