import Layers
import Posix

/// How many names of the merged view each layer contributes, and how many it hides.
struct NameCounts: Equatable {
  struct Layer: Equatable {
    var names = 0
    var hides = 0
  }

  private(set) var layers: [Layer]

  init(layers count: Int) { layers = Array(repeating: Layer(), count: count) }

  /// Walks a mount's tree.
  /// - Parameter showsProgress: on a terminal.
  /// - Throws: if a directory cannot be compared, or the layers change meanwhile.
  init(of mountPoint: MountPoint, _ mounted: MountedLayers, showsProgress: Bool = true) throws(Failure) {
    self.init(layers: mounted.layers.count)
    var walker = try Failure.naming(mountPoint.path.shown) { () throws(Errno) in
      try ComparisonWalker(of: mountPoint, from: [], includesUnchanged: true, showsProgress: showsProgress)
    }
    if walker.layers != mounted.layers.map(\.shown) { throw Self.changed(mountPoint) }
    do throws(Errno) { try walker.walk { add($0.name) } } catch {
      let reason = ComparisonWalker.Fault(path: [], error: error).reason
      throw .failed("\(mountPoint.path.shown): the names cannot be counted: \(reason)")
    }
    if let fault = walker.faults.first {
      throw .failed("\(shown(fault.path)): the names in it cannot be counted: \(fault.reason)")
    }
    let present = try MountedLayers(of: mountPoint)
    if present.layers.map(\.path) != mounted.layers.map(\.path) { throw Self.changed(mountPoint) }
  }

  private static func changed(_ mountPoint: MountPoint) -> Failure {
    .failed("\(mountPoint.path.shown): its layers were changed while their names were counted; try again")
  }

  /// A file counts for the layer that it comes from. A directory counts only where no other layer has the name, or where
  /// it replaces a file: a layer with nothing but directories of other layers contributes nothing. A merged table
  /// counts for each layer that it comes from.
  mutating func add(_ name: ComparedName) {
    guard let layer = name.layers.first else { return }
    if name.status == .collision || name.status == .excluded { return }
    if name.status == .merged {
      for layer in name.layers { layers[layer].names += 1 }
    } else if name.status == .hidden {
      layers[layer].hides += 1
    } else if name.kind != .directory || name.layers.count == 1 || name.status == .overridden {
      layers[layer].names += 1
    }
  }
}
