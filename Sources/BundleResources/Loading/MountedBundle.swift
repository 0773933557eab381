import Bundles
import ControlClient
import CLibrary
import Layers
import Posix
import Routing

/// A bundle that is read through a mount.
struct MountedBundle: Sendable {
  /// An absolute path.
  let mountPoint: [UInt8]
  /// The mount's option `resource_scheme`.
  let scheme: [UInt8]
  private let types = MIMETypes()

  /// - Throws: ENOENT; EISDIR; EOPNOTSUPP for another kind of file; ENOTCONN if nothing is mounted; EACCES and EIO
  ///   from the layer.
  func open(_ url: ResourceURL) throws(Errno) -> OpenedResource {
    // Closed on return, because an open directory keeps the mount busy.
    let root = try root()
    do throws(Errno) {
      return try open(try path(of: url), below: root)
    } catch {
      guard error == .noSuchFileOrDirectory, try !isMounted(root) else { throw error }
      throw .socketNotConnected
    }
  }

  /// - Throws: if nothing is mounted there, or the mount's resources have another scheme.
  func check() throws(PathError) {
    let shows: Bool
    do throws(Errno) {
      _ = try StatusClient.read(.controlName, at: mountPoint)
      shows = try isMounted(try root())
    } catch { throw PathError(mountPoint: mountPoint, error) }
    if shows { return }
    let scheme = String(decoding: scheme, as: UTF8.self)
    throw PathError(
      errno: .socketNotConnected, path: mountPoint,
      reason: "the mount's resources have another scheme than '\(scheme)'; its option is 'resource_scheme'")
  }

  private func root() throws(Errno) -> Descriptor {
    do throws(Errno) {
      return try Descriptor.open(mountPoint, [.pathOnly, .directory])
    } catch {
      throw error == .noSuchFileOrDirectory || error == .notDirectory ? .socketNotConnected : error
    }
  }

  /// The directory in the mount's root through which resources are looked up, `rsrc:`.
  private var resourceDirectory: [UInt8] { scheme + [UInt8(ascii: ":")] }

  private func path(of url: ResourceURL) throws(Errno) -> [[UInt8]] {
    var path = [resourceDirectory]
    for name in url.path {
      if name.contains(UInt8(ascii: "/")) { throw .noSuchFileOrDirectory }
      path.append(Self.encode(name, localization: nil))
    }
    if let localization = url.localization {
      path[path.count - 1] = Self.encode(url.path[url.path.count - 1], localization: localization)
    }
    return path
  }

  /// Percent-encodes a name if the directory would otherwise take it for part of a URL.
  private static func encode(_ name: [UInt8], localization: [UInt8]?) -> [UInt8] {
    guard localization != nil || name.contains(where: { "%?".utf8.contains($0) }) else { return name }
    let query = localization.map { "?localization=" + PercentCoding.encoded(path: $0) } ?? ""
    return Array((PercentCoding.encoded(path: name) + query).utf8)
  }

  /// Opens a file without following symbolic links: the mount has resolved those that stay inside the bundle, and
  /// the others are not resources.
  private func open(_ path: [[UInt8]], below root: borrowing Descriptor) throws(Errno) -> OpenedResource {
    guard let name = path.last else { throw .noSuchFileOrDirectory }
    var directory = try root.open(".", [.pathOnly, .directory])
    for name in path.dropLast() {
      directory = try directory.open(name, [.pathOnly, .directory, .noFollow])
    }
    let file = try withCName(name) { name throws(Errno) in
      // Opening a device can have side effects.
      let attributes = try directory.attributes(of: name)
      switch attributes.kind {
      case .regular: break
      case .directory: throw .isDirectory
      case .symbolicLink: throw .noSuchFileOrDirectory
      default: throw .notSupported
      }
      return try directory.open(name, [.read, .noFollow, .nonBlocking, .noControllingTerminal])
    }
    return try OpenedResource(LayerFile(file), name: name, types: types)
  }

  private func isMounted(_ root: borrowing Descriptor) throws(Errno) -> Bool {
    try withCName(resourceDirectory) { name throws(Errno) in try root.contains(name) }
  }
}
