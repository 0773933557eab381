import Layers
import Posix
import WebServer

/// Opens the layers of a mount for the page, with the rights of the caller.
struct UILayers {
  let mount: UIMount
  let status: UIStatus

  var count: Int { status.mounted.layers.count }

  /// The view of the mount itself.
  func view() throws(Errno) -> Layer {
    .directory(
      try DirectoryLayer(
        path: mount.mountPoint.path, index: 0, covered: nil, clonesMount: false,
        foldsNames: status.foldsNames))
  }

  /// A layer by its index.
  /// - Throws: 404 for a layer that is not there, or that the mount covers.
  func open(_ index: Int) throws(WebError) -> Layer {
    guard status.mounted.layers.indices.contains(index) else {
      throw WebError(404, "there is no layer \(index)")
    }
    let layer = status.mounted.layers[index]
    if layer.kind == .archive { return try archive(layer, index) }
    do throws(Errno) {
      let opened = try DirectoryLayer(
        path: layer.laidPath.path, index: index, covered: nil, clonesMount: false,
        foldsNames: status.foldsNames, at: layer.laidPath.place)
      if opened.ownRoot.identity.device != mount.device { return .directory(opened) }
    } catch {
      throw WebError(404, "\(layer.shown): \(error)")
    }
    throw WebError(404, "\(layer.shown): the mount covers this layer")
  }

  private func archive(_ layer: MountedLayer, _ index: Int) throws(WebError) -> Layer {
    guard let path = ArchivePath(layer.laidPath.path) else {
      throw WebError(404, "\(layer.shown): no such archive")
    }
    do throws(ArchiveError) {
      return .archive(try mount.archives.open(path, layer, index, status))
    } catch {
      throw WebError(404, "\(layer.shown): \(error.message)")
    }
  }
}
