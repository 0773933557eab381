import Bundles
import Glibc
import Layers
import Posix
import Routing

/// A bundle as a mount shows it.
struct MountedBundle: Sendable {
  private let mountPoint: [UInt8]
  private let scheme: [UInt8]
  private let types = MIMETypes()

  /// - Parameters:
  ///   - mountPoint: an absolute path.
  ///   - scheme: the mount's name of the scheme.
  init(mountPoint: [UInt8], scheme: [UInt8]) {
    self.mountPoint = mountPoint
    self.scheme = scheme
  }

  /// Opens a resource.
  /// - Throws: ENOENT without such a one; EISDIR; EOPNOTSUPP for another kind of file; ENOTCONN without a
  ///   mount; EACCES and EIO as a layer answers.
  func open(_ wanted: ResourceURL) throws(Errno) -> OpenedResource {
    // Held no longer than this takes: an open directory keeps a mount from being unmounted.
    let root = try root()
    do throws(Errno) {
      return try open(try path(of: wanted), below: root)
    } catch {
      guard error == .noSuchFileOrDirectory, try !isMounted(root) else { throw error }
      throw .socketNotConnected
    }
  }

  private func root() throws(Errno) -> Descriptor {
    do throws(Errno) {
      return try withCName(mountPoint) { path throws(Errno) in
        try Descriptor.open(path, [.pathOnly, .directory])
      }
    } catch {
      throw error == .noSuchFileOrDirectory || error == .notDirectory ? .socketNotConnected : error
    }
  }

  /// The folder of the mount's root through which resources are found: `rsrc:`.
  private var folder: [UInt8] { scheme + [UInt8(ascii: ":")] }

  /// The names from the root to a resource.
  private func path(of wanted: ResourceURL) throws(Errno) -> [[UInt8]] {
    var path = [folder]
    for name in wanted.path {
      if name.contains(UInt8(ascii: "/")) { throw .noSuchFileOrDirectory }
      path.append(Self.written(name, localization: nil))
    }
    if let localization = wanted.localization {
      path[path.count - 1] = Self.written(wanted.path[wanted.path.count - 1], localization: localization)
    }
    return path
  }

  /// A name as the folder takes it: what could be the writing of a URL is written as in one.
  private static func written(_ name: [UInt8], localization: [UInt8]?) -> [UInt8] {
    guard localization != nil || name.contains(where: { "%?".utf8.contains($0) }) else { return name }
    let query = localization.map { "?localization=" + PercentCoding.encoded(path: $0) } ?? ""
    return Array((PercentCoding.encoded(path: name) + query).utf8)
  }

  /// Opens a file, following no link: one that leads to somewhere inside has been followed by the mount, and
  /// any other is no resource.
  private func open(
    _ path: [[UInt8]], below root: borrowing Descriptor
  ) throws(Errno) -> OpenedResource {
    guard let name = path.last else { throw .noSuchFileOrDirectory }
    var directory = try root.open(".", [.pathOnly, .directory])
    for name in path.dropLast() {
      directory = try withCName(name) { name throws(Errno) in
        try directory.open(name, [.pathOnly, .directory, .noFollow])
      }
    }
    let file = try withCName(name) { name throws(Errno) in
      // Opening a device can do things.
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
    try withCName(folder) { name throws(Errno) in try root.contains(name) }
  }
}
