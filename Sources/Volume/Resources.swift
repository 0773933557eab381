import Bundles
import Fuse
import Glibc
import Layers
import Posix
import Routing

/// What the user chose for resources (design, section 6).
public struct ResourceSettings: Sendable {
  /// The scheme of their URLs, in lower case.
  public var scheme = "rsrc"
  /// How they are looked up.
  public var lookup = ResourceOptions()
  /// The absolute path of the mount, for `file:` URLs.
  public var mountPoint = Array("/".utf8)

  /// The defaults.
  public init() {}
}

/// The resources of the bundle that the layers make up.
final class Resources: Sendable {
  let scheme: String
  /// The name in the mount's root under which URLs are paths: the scheme and its colon.
  let folderName: [UInt8]
  let mountPoint: [UInt8]
  let lookup: ResourceLookup
  let types = MIMETypes()
  let folders = Locked(ResourceFolderNodes())

  init(_ stack: LayerStack, _ settings: ResourceSettings) {
    scheme = settings.scheme
    folderName = Array("\(settings.scheme):".utf8)
    mountPoint = settings.mountPoint
    lookup = ResourceLookup(stack: stack, options: settings.lookup)
  }

  /// Whether a name of the root is the resources' folder.
  func isFolder(_ name: CName) -> Bool {
    folderName.withUnsafeBytes {
      strlen(name) == $0.count && memcmp(name, $0.baseAddress.unsafelyUnwrapped, $0.count) == 0
    }
  }
}

extension Volume {
  /// What the URL of a resource resolves to.
  /// - Parameter requester: who asks; what he could not open by its own path is not told.
  /// - Throws: EINVAL for what no resource is called; ENOENT without such a resource; EACCES and EIO as its
  ///   layer answers.
  func resolved(_ url: RouteURL, for requester: Requester) throws(RoutingError) -> ResolvedResource {
    let wanted: ResourceURL
    do throws(ResourceRefusal) {
      wanted = try ResourceURL(
        host: url.host, segments: url.segments, localization: url.parameter("localization"))
    } catch {
      throw RoutingError(.malformed, error.description)
    }
    do throws(Errno) {
      if let found = try described(wanted, for: requester) {
        return resolved(found.resource, found.description)
      }
    } catch {
      let isForbidden = error == .accessDenied || error == .notPermitted
      throw RoutingError(isForbidden ? .forbidden : .unreadable, "\(String(escaping: url.text)): \(error)")
    }
    throw RoutingError(.noRoute, "there is no resource \(String(escaping: url.text))")
  }

  private func described(
    _ wanted: ResourceURL, for requester: Requester
  ) throws(Errno) -> (resource: FoundResource, description: ResourceDescription)? {
    // The bound is only against someone who replaces it for ever.
    for _ in 0..<16 {
      guard let found = try resources.lookup.find(wanted.path, localization: wanted.localization),
        !found.leadsNowhere
      else { return nil }
      try checkReach(found.path, for: requester)
      do throws(Errno) {
        return (found, try found.description(by: resources.types))
      } catch {
        if error != .stale && error != .noEntry { throw error }
      }
    }
    throw .stale
  }

  private func resolved(_ found: FoundResource, _ description: ResourceDescription) -> ResolvedResource {
    let path = Array(found.path.joined(separator: CollectionOfOne(UInt8(ascii: "/"))))
    let slash = resources.mountPoint.last == UInt8(ascii: "/") ? [] : [UInt8(ascii: "/")]
    return ResolvedResource(
      path: path,
      file: FileURL.text(
        of: resources.mountPoint + slash + path, isDirectory: found.attributes.isDirectory),
      layer: stack.layers[found.layer].path, mimeType: description.mimeType,
      expectedContentLength: description.length, textEncodingName: description.textEncodingName)
  }

  /// Makes sure that somebody could come to a path of the merged view by himself: the folder of resources is
  /// a way past the directories' permissions. His groups are not known here, so a directory must let everyone
  /// through, and have no access control list.
  /// - Throws: EACCES if not; ENOENT when the path is gone.
  func checkReach(_ path: [[UInt8]], for requester: Requester) throws(Errno) {
    if requester.user == 0 || requester.user == getuid() { return }
    var directory = try stack.root()
    var attributes = try directory.attributes()
    for (place, name) in path.enumerated() {
      guard attributes.mode & 0o111 == 0o111, try !directory.top.hasAccessControlList else {
        throw .accessDenied
      }
      let entry = try withCName(name) { name throws(Errno) in try directory.lookup(name) }
      switch entry {
      case .directory(let next, let found): (directory, attributes) = (next, found)
      case .file where place == path.count - 1: return
      default: throw .noEntry
      }
    }
  }
}

extension FoundResource {
  /// Whether it is a symbolic link that leads nowhere inside the mount.
  var leadsNowhere: Bool { attributes.kind == .symbolicLink }
}

extension LayerDirectory {
  fileprivate var hasAccessControlList: Bool {
    get throws(Errno) {
      do throws(Errno) {
        let none = UnsafeMutableRawBufferPointer(start: nil, count: 0)
        return try extendedAttribute("system.posix_acl_access", into: none) > 0
      } catch {
        if error == .noData || error == .notSupported { return false }
        throw error
      }
    }
  }
}
