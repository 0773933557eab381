import Layers
import Posix
import Routing

/// The layers of a mount, opened anew by the command with its own rights: the top one and the target to be changed, the others to be
/// compared with.
struct ApplyLayers {
  let top: TopLayer
  let target: UpperLayer
  /// The target's index.
  let index: Int
  let stack: LayerStack
  /// The layers' paths for messages, top first.
  let paths: [String]

  /// - Parameter given: the layer that gets the entries; nil for MAIN.
  init(_ top: TopLayer, to given: [UInt8]?) throws(Failure) {
    guard let mounted = MountedLayers(top.status) else {
      throw .failed("\(top.mountPoint.path.shown): the daemon does not report its layers")
    }
    let layers = mounted.layers
    index = try given.map { given throws(Failure) in try mounted.order.find(given) } ?? layers.count - 1
    if index == 0 {
      throw .failed("\(layers[0].shown) is the top layer itself; name one below it, such as '--to MAIN'")
    }
    if layers[index].kind == .archive {
      throw .failed(
        "\(layers[index].shown): an archive, which cannot be changed; name a folder by '--to LAYER', or unpack it"
      )
    }
    if let place = layers[index].place {
      throw .failed(
        "\(layers[index].shown) is laid at '\(place)'; name a layer that is not, such as '--to MAIN'")
    }
    try Self.refuseOverlap(layers, index)
    self.top = top
    target = try TopLayer.open(
      layers[index].laidPath.path, shown: layers[index].shown, index: index, outside: top.device,
      foldsNames: top.foldsNames,
      remedy: "this layer, so the command cannot reach it; mount at another place to apply to it")
    if target.layer.root.identity == top.upper.layer.root.identity {
      target.close()
      throw .failed("\(layers[index].shown) and \(layers[0].shown) are one folder, by a bind mount")
    }
    stack = try Self.stack(layers, top, target, index)
    paths = layers.map(\.shown)
  }

  /// What is removed from one of the layers must not be a part of another.
  private static func refuseOverlap(_ layers: [MountedLayer], _ target: Int) throws(Failure) {
    // Through symbolic links.
    let paths = layers.map { $0.kind == .directory ? $0.laidPath.resolved.path : $0.laidPath.path }
    for changed in [0, target] {
      for (index, other) in layers.enumerated() where index != changed && other.kind == .directory {
        let (path, inner) = (paths[changed], paths[index])
        guard path == inner || isInside(path, inner) || isInside(inner, path) else { continue }
        throw .failed(
          "\(layers[changed].shown) and \(other.shown) overlap: changing one would change the other"
        )
      }
    }
  }

  private static func isInside(_ path: [UInt8], _ folder: [UInt8]) -> Bool {
    path.starts(with: folder + (folder.last == UInt8(ascii: "/") ? [] : [UInt8(ascii: "/")]))
  }

  private static func stack(
    _ layers: [MountedLayer], _ top: TopLayer, _ target: UpperLayer, _ targetIndex: Int
  ) throws(Failure) -> LayerStack {
    let contents = ContentCache()
    var opened: [Layer] = []
    for (index, layer) in layers.enumerated() {
      switch index {
      case 0: opened.append(.directory(top.upper.layer))
      case targetIndex: opened.append(.directory(target.layer))
      default: opened.append(try open(layer, index, top, contents))
      }
    }
    return LayerStack(layers: opened)
  }

  private static func open(
    _ layer: MountedLayer, _ index: Int, _ top: TopLayer, _ contents: ContentCache
  ) throws(Failure) -> Layer {
    guard layer.kind == .directory else { return try archive(layer, index, top, contents) }
    do throws(Errno) {
      let opened = try DirectoryLayer(
        path: layer.laidPath.path, index: index, covered: nil, foldsNames: top.foldsNames,
        at: layer.laidPath.place)
      if opened.ownRoot.identity.device != top.device { return .directory(opened) }
    } catch {
      let absent = try? DirectoryLayer(
        absent: layer.laidPath.path, index: index, covered: nil, foldsNames: top.foldsNames)
      if error == .noSuchFileOrDirectory, let absent { return .directory(absent) }
      throw .failed("\(layer.shown): \(error)")
    }
    throw .failed(
      "\(layer.shown): the mount covers this layer, so the command cannot read what is beneath; mount at another place"
    )
  }

  private static func archive(
    _ layer: MountedLayer, _ index: Int, _ top: TopLayer, _ contents: ContentCache
  ) throws(Failure) -> Layer {
    let encoding = top.status["options"]?["archive_encoding"]?.string.flatMap { NameEncoding($0) }
    guard let path = ArchivePath(layer.laidPath.path) else {
      throw .failed("\(layer.shown): no such archive")
    }
    do throws(ArchiveError) {
      return .archive(
        try path.open(
          index: index, encoding, contents, foldsNames: top.foldsNames, at: layer.laidPath.place))
    } catch {
      throw .failed("\(layer.shown): \(error.message)")
    }
  }

  /// Ends the access to the layers.
  func finish() { target.close() }
}
