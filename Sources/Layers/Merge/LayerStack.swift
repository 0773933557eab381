import Posix
import StringTables

/// The layers of a mount, top first: the substitution directories in order, then MAIN.
public struct LayerStack: Sendable {
  /// Top first; never empty.
  public let layers: [Layer]
  /// Layers that the mount had before: programs may still read their files. Their indexes follow those of `layers`.
  private let retired: RetiredLayers
  /// By index.
  public let ids: [LayerID]
  /// The indexes of a predecessor's layers, top first; nil if those were the same.
  let formerIndexes: [Int]?

  /// Creates a stack of at least one layer, top first; the index of each is its position.
  /// - Parameters:
  ///   - ids: of the layers and the retired ones; by default their indexes.
  ///   - former: the indexes of a predecessor's layers, top first, if those were others.
  public init(layers: [Layer], retired: [Layer] = [], ids: [LayerID]? = nil, former: [Int]? = nil) {
    precondition(!layers.isEmpty, "a stack has at least its main layer")
    self.layers = layers
    self.retired = RetiredLayers(retired)
    formerIndexes = former
    let count = layers.count + retired.count
    self.ids = ids ?? (0..<count).map { LayerID(rawValue: UInt16(truncatingIfNeeded: $0)) }
    precondition(self.ids.count == count, "each layer has an ID")
  }

  /// The layer with an index, which may be a retired one.
  public subscript(index: Int) -> Layer {
    // MAIN takes the place of a released layer, to which nothing refers any more.
    index < layers.count ? layers[index] : retired[index - layers.count] ?? layers[layers.count - 1]
  }

  /// The layers with their indexes, also the retired ones that are not released.
  public var all: [(index: Int, layer: Layer)] {
    let retired = retired.present.map { (index: layers.count + $0.place, layer: $0.layer) }
    return layers.enumerated().map { (index: $0, layer: $1) } + retired
  }

  /// The indexes of the retired layers that are not released.
  public var retiredIndexes: [Int] { retired.present.map { layers.count + $0.place } }

  /// Gives up a retired layer to which nothing refers any more. It is closed.
  public func release(_ index: Int) { retired.release(index - layers.count) }

  /// Whether case does not count in names.
  public var foldsNames: Bool { layers[0].gate.foldsNames }

  /// Merges the tables of strings that several layers have by the same name.
  /// - Parameter device: for which of the devices that catalogs name texts are chosen; nil for none of them.
  public func mergeTables(forDevice device: String? = nil) {
    let tables = MergedTables(for: TextVariant(device: device))
    for (_, layer) in all { layer.gate.tables = tables }
  }

  /// Has all spellings of a directory be merged alike, since they have one node.
  public func shareSpellings() { for (_, layer) in all { layer.gate.sharesSpellings = true } }

  /// What merges tables of strings; nil if they are not merged.
  public var tables: MergedTables? { layers[0].gate.tables }

  /// Creates a stack of directories.
  public init(layers: [DirectoryLayer]) { self.init(layers: layers.map { Layer.directory($0) }) }

  /// The predecessor's layers, with the indexes that they have in this stack; nil if those were the same.
  public var former: LayerStack? { formerIndexes.map { LayerStack(layers: $0.map { self[$0] }) } }

  /// Runs a job on a thread of the layer for which the calling thread has just put off a call.
  /// - Returns: false if it has put off none since `LayerAccess.clearDeferral`.
  public func runDeferred(_ job: @escaping @Sendable () -> Void) -> Bool {
    guard let layer = LayerAccess.deferredLayer, ids.indices.contains(layer) else { return false }
    self[layer].gate.run(job)
    return true
  }

  /// The merged root directory, with the present opaque markers.
  /// - Parameter toleratesDeferral: whether the root of a layer that may not answer is taken for one that is not opaque.
  public func root(toleratesDeferral: Bool = false) throws(Errno) -> MergedDirectory {
    var parts: [LayerDirectory] = []
    for (position, layer) in layers.enumerated() where !layer.isAbsent {
      parts.append(layer.root)
      if position < layers.count - 1, try isOpaque(layer.root, toleratesDeferral) { break }
    }
    return MergedDirectory(parts: parts)
  }

  private func isOpaque(_ root: LayerDirectory, _ toleratesDeferral: Bool) throws(Errno) -> Bool {
    if root.gate.isSkipped { return false }
    do throws(Errno) { return try root.isKnownToBeOpaque() } catch {
      guard toleratesDeferral, error == .deferred else { throw error }
      return false
    }
  }

  /// The merged directory at a path from the root.
  /// - Parameter toleratesDeferral: as in `MergedDirectory.lookup`.
  /// - Throws: ENOENT if it does not exist; ENOTDIR if it is not a directory.
  public func directory(
    at path: [[UInt8]], toleratesDeferral: Bool = false
  ) throws(Errno) -> MergedDirectory {
    var directory = try root(toleratesDeferral: toleratesDeferral)
    for name in path {
      let entry = try withCName(name) { name throws(Errno) in
        try directory.lookup(name, toleratesDeferral: toleratesDeferral)
      }
      switch entry {
      case .directory(let next, _): directory = next
      case .file: throw .notDirectory
      case nil: throw .noSuchFileOrDirectory
      }
    }
    return directory
  }
}
