import Posix

/// Layers that the mount had before. Each stays open for as long as programs may read its files.
public final class RetiredLayers: Sendable {
  /// nil in the place of a released layer, so that the others keep theirs.
  private let places: Locked<[Layer?]>
  /// How many places there are.
  let count: Int

  init(_ layers: [Layer]) {
    places = Locked(layers)
    count = layers.count
  }

  subscript(place: Int) -> Layer? { places.withLock { $0[place] } }

  /// The places of the layers that are not released, with the layers.
  var present: [(place: Int, layer: Layer)] {
    places.withLock { places in
      places.enumerated().compactMap { place, layer in layer.map { (place, $0) } }
    }
  }

  /// Gives a layer up, which is closed once nothing uses it.
  func release(_ place: Int) {
    let layer = places.withLock { $0[place].take() }
    withExtendedLifetime(layer) {}
  }
}
