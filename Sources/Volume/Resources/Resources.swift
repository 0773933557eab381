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
  let folders: Locked<ResourceFolderNodes>
  /// When the mount began.
  let beginning = TimeSpec.now

  init(_ stack: LayerStack, _ settings: ResourceSettings) {
    scheme = settings.scheme
    folderName = Array("\(settings.scheme):".utf8)
    mountPoint = settings.mountPoint
    folders = Locked(
      ResourceFolderNodes(top: InodeNumbers.directory(parent: InodeNumbers.root, name: folderName)))
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
  func resolved(_ url: RouteURL, for caller: Caller) throws(RoutingError) -> ResolvedResource {
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
    let access = access(for: caller)
    // The bound is only against someone who replaces it for ever.
    for _ in 0..<16 {
      guard
        let found = try resources.lookup.find(wanted.path, localization: wanted.localization, for: access),
        isShown(found)
      else { return nil }
      do throws(Errno) {
        // What it is is told by its content.
        if case .everyone = access, try !found.isReadableByEveryone() { throw .permissionDenied }
        return (found, try found.description(by: resources.types))
      } catch {
        if error != .staleFileHandle && error != .noSuchFileOrDirectory { throw error }
      }
    }
    throw .staleFileHandle
  }

  /// For whom resources are looked up: the folder of resources is a way past the directories' permissions, and
  /// the groups of others are not known here.
  func access(for caller: Caller) -> ResourceAccess {
    caller.user == 0 || caller.user == getuid() ? .unrestricted : .everyone
  }

  /// Whether a program finds at the resource's path what the lookup found: not a link that leads nowhere inside
  /// the mount, and nothing that the mount's own files hide.
  func isShown(_ found: FoundResource) -> Bool {
    found.attributes.kind != .symbolicLink && found.path.first != control.name
      && found.path.first != resources.folderName
  }

  private func resolved(_ found: FoundResource, _ description: ResourceDescription) -> ResolvedResource {
    let path = found.path.joinedPath
    let slash = resources.mountPoint.last == UInt8(ascii: "/") ? [] : [UInt8(ascii: "/")]
    return ResolvedResource(
      path: path,
      file: FileURL.text(
        of: resources.mountPoint + slash + path, isDirectory: found.attributes.isDirectory),
      layer: stack.layers[found.layer].path, mimeType: description.mimeType,
      expectedContentLength: description.length, textEncodingName: description.textEncodingName)
  }
}
