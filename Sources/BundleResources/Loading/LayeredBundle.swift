import Bundles
import Glibc
import Layers
import Posix

/// A bundle with substitutions that is read without a mount.
final class LayeredBundle: Sendable {
  /// With the ID of the mount in which it was opened; nil before Linux 5.8.
  private typealias OpenLayer = (layer: DirectoryLayer, mount: Int?)

  private let layers: [OpenLayer]
  private let lookup: ResourceLookup
  private let types = MIMETypes()

  /// - Parameter paths: the layers' absolute paths, top first.
  init(paths: [[UInt8]], options: ResourceOptions) throws(PathError) {
    var layers: [OpenLayer] = []
    for (index, path) in paths.enumerated() {
      do throws(Errno) {
        layers.append(try Self.layer(path, index: index))
      } catch {
        throw PathError(errno: error, path: path)
      }
    }
    self.layers = layers
    lookup = ResourceLookup(stack: LayerStack(layers: layers.map { .directory($0.layer) }), options: options)
  }

  private static func layer(_ path: [UInt8], index: Int) throws(Errno) -> OpenLayer {
    let path = try realPath(path)
    var mount = 0
    let isKnown =
      (try? withCName(path) { name throws(Errno) in
        _ = try Descriptor.openNoSymlinks(name, mount: &mount)
      }) != nil
    // A cloned mount would keep the layer's file system busy.
    let layer = try DirectoryLayer(path: path, index: index, covered: nil, clonesMount: false)
    return (layer, isKnown ? mount : nil)
  }

  /// - Throws: ENOENT; EISDIR; EOPNOTSUPP for another kind of file; ESTALE if the file is replaced again and again;
  ///   EACCES and EIO from the layer.
  func open(_ url: ResourceURL) throws(Errno) -> OpenedResource {
    // Reopens layers that were removed and created again; a missing one stays open.
    for case (let layer, let mount?) in layers { _ = try? layer.reopen(mount: mount) }
    // Limited in case the file is replaced in an endless loop.
    for _ in 0..<64 {
      guard let found = try lookup.find(url.path, localization: url.localization) else {
        throw .noSuchFileOrDirectory
      }
      try Self.check(found, url)
      do throws(Errno) {
        return try OpenedResource(try found.open(), name: found.name, types: types)
      } catch {
        // The file was removed or replaced after the lookup.
        if error != .staleFileHandle && error != .noSuchFileOrDirectory { throw error }
      }
    }
    throw .staleFileHandle
  }

  private static func check(_ found: FoundResource, _ url: ResourceURL) throws(Errno) {
    switch found.attributes.kind {
    case .regular: break
    // A mount has no directories with a localization in the name either.
    case .directory: throw url.localization == nil ? .isDirectory : .noSuchFileOrDirectory
    // The link is dangling or leads out of the bundle.
    case .symbolicLink: throw .noSuchFileOrDirectory
    default: throw .notSupported
    }
  }
}
