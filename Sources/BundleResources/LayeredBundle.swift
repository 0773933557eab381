import Bundles
import Glibc
import Layers
import Posix

/// A bundle and its substitutions, looked at directly.
final class LayeredBundle: Sendable {
  /// A layer, and the number of the mount that held it at the beginning; nil where Linux does not tell it.
  private struct Held: Sendable {
    let layer: DirectoryLayer
    let mount: Int?
  }

  private let held: [Held]
  private let lookup: ResourceLookup
  private let types = MIMETypes()

  /// - Parameter paths: absolute ones of the layers, top first.
  init(paths: [[UInt8]], options: ResourceOptions) throws(PathError) {
    var held: [Held] = []
    for (index, path) in paths.enumerated() {
      do throws(Errno) {
        held.append(try Self.layer(path, index: index))
      } catch {
        throw PathError(errno: error, path: path)
      }
    }
    self.held = held
    lookup = ResourceLookup(stack: LayerStack(layers: held.map { .directory($0.layer) }), options: options)
  }

  private static func layer(_ path: [UInt8], index: Int) throws(Errno) -> Held {
    let path = try realPath(path)
    var mount = 0
    let isKnown =
      (try? withCName(path) { name throws(Errno) in
        _ = try Descriptor.openNoSymlinks(name, mount: &mount)
      }) != nil
    // A clone would keep the file system of the layer busy.
    let layer = try DirectoryLayer(path: path, index: index, covered: nil, clonesMount: false)
    return Held(layer: layer, mount: isKnown ? mount : nil)
  }

  /// Opens a resource.
  /// - Throws: ENOENT without such a one; EISDIR; EOPNOTSUPP for another kind of file; ESTALE if it is replaced
  ///   again and again; EACCES and EIO as a layer answers.
  func open(_ wanted: ResourceURL) throws(Errno) -> OpenedResource {
    // Removed and made anew, a layer is the new directory; while it is missing it is the old one.
    for held in held {
      if let mount = held.mount { _ = try? held.layer.reopen(mount: mount) }
    }
    // The bound is only against someone who replaces it for ever.
    for _ in 0..<64 {
      guard let found = try lookup.find(wanted.path, localization: wanted.localization) else {
        throw .noSuchFileOrDirectory
      }
      try Self.check(found, as: wanted)
      do throws(Errno) {
        return try OpenedResource(try found.open(), name: found.name, types: types)
      } catch {
        // It was removed or replaced since it was found.
        if error != .staleFileHandle && error != .noSuchFileOrDirectory { throw error }
      }
    }
    throw .staleFileHandle
  }

  /// Makes sure that it is a file.
  private static func check(_ found: FoundResource, as wanted: ResourceURL) throws(Errno) {
    switch found.attributes.kind {
    case .regular: break
    // A mount, too, has no folder under such a name.
    case .directory: throw wanted.localization == nil ? .isDirectory : .noSuchFileOrDirectory
    // It leads nowhere inside.
    case .symbolicLink: throw .noSuchFileOrDirectory
    default: throw .notSupported
    }
  }
}
