import Layers
import Posix

/// The order of a mount's layers, and how `set`, `add`, `remove` and `move` change it.
struct LayerOrder {
  /// The layers' absolute paths, without symbolic links, as the daemon has them (`LaidPath.name`); top first, MAIN last.
  private(set) var paths: [[UInt8]]
  /// Whether the topmost layer takes the changes of the mount, and therefore stays where it is.
  private let isWritable: Bool
  /// Where relative paths begin.
  private let directory: [UInt8]

  /// - Parameter paths: the present layers; at least MAIN, and two if the mount is writable.
  init(_ paths: [[UInt8]], isWritable: Bool, from directory: [UInt8]) {
    (self.paths, self.isWritable, self.directory) = (paths, isWritable && paths.count > 1, directory)
  }

  /// All layers but MAIN, top first.
  var substitutions: [[UInt8]] { Array(paths.dropLast()) }

  private var main: Int { paths.count - 1 }
  /// The number of layers at the top that stay there.
  private var fixed: Int { isWritable ? 1 : 0 }

  // MARK: - Changes

  /// Replaces all substitutions, except for the layer that takes changes, which may be given as the first one or be left
  /// out.
  mutating func set(_ given: [[UInt8]]) throws(Failure) {
    var layers = try mounted(given)
    if isWritable {
      if layers.first == paths[0] { layers.removeFirst() }
      if layers.contains(paths[0]) { throw staysOnTop }
    }
    paths = paths.prefix(fixed) + layers + [paths[main]]
  }

  /// - Throws: if one of them is a layer already, or given twice.
  mutating func add(_ given: [[UInt8]], _ position: LayerPosition) throws(Failure) {
    let layers = try mounted(given)
    let index = try index(of: position)
    for layer in layers {
      if paths.contains(layer) {
        let hint = layer == paths[main] ? "it is MAIN" : "'move' changes its place"
        throw .failed("\(layer.shown) is already a layer; \(hint)")
      }
      if layers.count(where: { $0 == layer }) > 1 { throw .failed("\(layer.shown) is given twice") }
    }
    paths.insert(contentsOf: layers, at: index)
  }

  private func mounted(_ given: [[UInt8]]) throws(Failure) -> [[UInt8]] {
    try given.map { given throws(Failure) in
      LayerName.mounted(try LaidPath(given: given), from: directory).name
    }
  }

  mutating func remove(_ given: [[UInt8]]) throws(Failure) {
    var indexes: Set<Int> = []
    for layer in given { indexes.insert(try movable(layer, "removed")) }
    paths = paths.indices.filter { !indexes.contains($0) }.map { paths[$0] }
  }

  mutating func move(_ given: [UInt8], _ position: LayerPosition) throws(Failure) {
    let from = try movable(given, "moved")
    switch position {
    case .above(let other), .below(let other):
      if try find(other) == from { throw .failed("\(paths[from].shown) cannot be moved next to itself") }
    case .top, .bottom: break
    }
    let to = try index(of: position)
    let layer = paths.remove(at: from)
    paths.insert(layer, at: to > from ? to - 1 : to)
  }

  // MARK: - Places

  /// The index before which a layer is to be inserted.
  private func index(of position: LayerPosition) throws(Failure) -> Int {
    switch position {
    case .top: return fixed
    case .bottom: return main
    case .above(let other):
      let index = try find(other)
      if index < fixed { throw staysOnTop }
      return index
    case .below(let other):
      let index = try find(other)
      if index == main { throw .failed("\(paths[main].shown) is MAIN; no layer can be below it") }
      return index + 1
    }
  }

  private func movable(_ given: [UInt8], _ verb: String) throws(Failure) -> Int {
    let index = try find(given)
    if index == main {
      throw .failed("\(paths[main].shown) is MAIN, which cannot be \(verb)")
    }
    if index < fixed { throw staysOnTop }
    return index
  }

  private var staysOnTop: Failure {
    .failed("\(paths[0].shown) takes the changes of the writable mount, so it stays on top")
  }

  // MARK: - Names

  /// The layer with a path, or the only one whose path ends so.
  func find(_ given: [UInt8]) throws(Failure) -> Int {
    let found = candidates(given)
    if found.count > 1 {
      let names = found.map { paths[$0].shown }.joined(separator: ", ")
      throw .failed("'\(given.shown)' is ambiguous (\(names)); give more of the path")
    }
    guard let index = found.first else {
      let names = paths.dropLast().map(\.shown) + ["MAIN \(paths[main].shown)"]
      throw .failed("'\(given.shown)' is not a layer; the layers are \(names.joined(separator: ", "))")
    }
    return index
  }

  /// Asks the file system only for a name that is not a layer's path: a layer that does not answer can be removed, too.
  private func candidates(_ given: [UInt8]) -> [Int] {
    let wanted = LaidPath(checked: given)
    let layers = paths.map { LaidPath(checked: $0) }
    let absolute = LaidPath(LayerName.absolute(wanted.path, from: directory), atFolder: wanted.place)
    var found = layers.indices.filter { layers[$0] == absolute }
    if found.isEmpty {
      let resolved = absolute.resolved
      found = layers.indices.filter { layers[$0] == resolved }
      // Without a folder, it is meant wherever it is laid.
      if found.isEmpty, wanted.place.isEmpty {
        found = layers.indices.filter { [absolute.path, resolved.path].contains(layers[$0].path) }
      }
    }
    if found.isEmpty {
      found = layers.indices.filter { index in
        LayerName.matches(layers[index].path, wanted.path)
          && (wanted.place.isEmpty || layers[index].place == wanted.place)
      }
    }
    if !found.isEmpty { return found }
    return given.elementsEqual("MAIN".utf8) ? [main] : []
  }
}
