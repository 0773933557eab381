import Bundles
import Fuse
import Glibc
import Layers
import Posix
import Routing

/// The user's choices for resources.
public struct ResourceSettings: Sendable {
  /// The scheme of their URLs, in lower case; empty for no such URLs, and no directory of resources.
  public var scheme = "rsrc"
  /// How they are looked up.
  public var lookup = ResourceOptions()
  /// The absolute path of the mount, for `file:` URLs.
  public var mountPoint = Array("/".utf8)

  /// The defaults.
  public init() {}

  /// The name of the directory of resources in the mount's root; empty for none.
  public var directoryName: [UInt8] { scheme.isEmpty ? [] : Array("\(scheme):".utf8) }
}

/// Resolves the URLs of resources of the bundle that the layers make up.
final class ResourceResolver: Sendable {
  let scheme: String
  let lookup: ResourceLookup
  let types = MIMETypes()
  private let stack: LayerStack
  private let mountPoint: [UInt8]
  private let reserved: ReservedNames
  /// Whether the mount shows no file as readable for all.
  private let isForOwnerAlone: Bool

  init(
    _ stack: LayerStack, _ settings: ResourceSettings, _ reserved: ReservedNames,
    _ owners: ShownOwners? = nil
  ) {
    isForOwnerAlone = (owners?.umask ?? 0) & 0o555 != 0
    self.stack = stack
    self.reserved = reserved
    scheme = settings.scheme
    mountPoint = settings.mountPoint
    lookup = ResourceLookup(stack: stack, options: settings.lookup)
  }

  /// - Parameter caller: a file that the caller could not open by its own path is not described.
  /// - Throws: EINVAL for a name that no resource can have; ENOENT without such a resource; EACCES and EIO as its
  ///   layer answers.
  func resolve(_ url: RouteURL, for caller: Caller) throws(RoutingError) -> ResolvedResource {
    let wanted: ResourceURL
    do throws(ResourceURLError) {
      wanted = try ResourceURL(
        host: url.host, segments: url.segments, localization: url.parameter("localization"))
    } catch {
      throw RoutingError(.malformed, error.description)
    }
    do throws(Errno) {
      if let found = try described(wanted, for: caller) {
        return resolved(found.resource, found.description)
      }
    } catch {
      let isForbidden = error == .permissionDenied || error == .notPermitted
      throw RoutingError(isForbidden ? .forbidden : .unreadable, "\(String(escaping: url.text)): \(error)")
    }
    throw RoutingError(.noRoute, "there is no resource \(String(escaping: url.text))")
  }

  private func described(
    _ wanted: ResourceURL, for caller: Caller
  ) throws(Errno) -> (resource: FoundResource, description: ResourceDescription)? {
    let access = try access(for: caller)
    // Bounded in case a program replaces the file in a loop.
    for _ in 0..<16 {
      guard
        let found = try lookup.find(wanted.path, localization: wanted.localization, for: access),
        isVisible(found)
      else { return nil }
      do throws(Errno) {
        // The description reveals something about the content.
        if case .everyone = access, try !found.isReadableByEveryone() { throw .permissionDenied }
        return (found, try found.description(by: types))
      } catch {
        if error != .staleFileHandle && error != .noSuchFileOrDirectory { throw error }
      }
    }
    throw .staleFileHandle
  }

  /// Which resources a caller may find. The resource directory bypasses directories' permissions, and the daemon
  /// does not know the caller's groups.
  /// - Throws: EACCES for one that may find none.
  func access(for caller: Caller) throws(Errno) -> ResourceAccess {
    if caller.user == 0 || caller.user == getuid() { return .unrestricted }
    if isForOwnerAlone { throw .permissionDenied }
    return .everyone
  }

  /// Whether a program finds the same at the resource's path: no link that leads nowhere inside the mount, and
  /// nothing that a reserved name hides.
  func isVisible(_ found: FoundResource) -> Bool {
    found.attributes.kind != .symbolicLink && found.path.first.map { reserved.contains($0) } != true
  }

  private func resolved(_ found: FoundResource, _ description: ResourceDescription) -> ResolvedResource {
    let path = found.path.joinedPath
    let slash = mountPoint.last == UInt8(ascii: "/") ? [] : [UInt8(ascii: "/")]
    return ResolvedResource(
      path: path,
      file: FileURL.text(of: mountPoint + slash + path, isDirectory: found.attributes.isDirectory),
      layer: stack.layers[found.layer].path, mimeType: description.mimeType,
      expectedContentLength: description.length, textEncodingName: description.textEncodingName)
  }
}
