import Bundles
import Foundation
import FoundationNetworking
import Posix
import Routing

/// Where `rsrc:` URLs are loaded from: a mount of bundlefs, or a bundle and its substitutions.
///
/// Both find the same: for `rsrc:///DIR/NAME`, the resource NAME of the bundle in the sub-folder DIR, in the
/// substitutions first and then in the main bundle, in each of them unlocalized first and then by language.
/// `rsrc:///NAME?localization=fr` asks for one localization. Every load looks anew, so that a file that was
/// dropped into a substitution a moment ago is found.
public final class ResourceSource: Sendable {
  private enum Backend: Sendable {
    case mount(MountedBundle)
    case layers(LayeredBundle)
  }

  private let place: Backend
  /// Where URLSession's loads are read.
  let readers = LoaderPool(limit: 8)

  /// The mount of a bundle.
  ///
  /// The mount need not be there yet. While it is not, loads fail with `URLError.resourceUnavailable`.
  /// - Parameters:
  ///   - mountPoint: the file URL of the directory on which the bundle is or will be mounted.
  ///   - scheme: the mount's option `resource_scheme`; its case does not count.
  /// - Throws: `URLError.badURL` if it is no file URL.
  public init(mountPoint: URL, scheme: String = "rsrc") throws(URLError) {
    place = .mount(
      MountedBundle(mountPoint: try mountPoint.filePath(), scheme: Array(scheme.lowercased().utf8)))
  }

  /// A bundle with substitutions, without a mount.
  ///
  /// The directories are watched over as by a mount: one that is removed and made anew is looked at anew.
  /// - Parameters:
  ///   - main: the file URL of the bundle's directory.
  ///   - substitution: the file URLs of the directories that are laid over it; the first wins.
  ///   - options: how resources are looked up.
  /// - Throws: `URLError.badURL` for what is no file URL; `.fileDoesNotExist`, `.noPermissionsToReadFile` and
  ///   the like for what cannot be opened as a directory.
  public init(
    main: URL, substitution: [URL] = [], options: LookupOptions = LookupOptions()
  ) throws(URLError) {
    var paths: [[UInt8]] = []
    for url in substitution + [main] { paths.append(try url.filePath()) }
    do throws(PathError) {
      place = .layers(try LayeredBundle(paths: paths, options: options.resolved))
    } catch {
      throw URLError(error.errno, URL(fileURLWithPath: String(decoding: error.path, as: UTF8.self)))
    }
  }

  /// Loads a resource, and returns when it is there. The scheme of the URL is not looked at.
  /// - Throws: `URLError`: `.badURL` for a host, a `..` or a NUL in the URL; `.fileDoesNotExist` without such a
  ///   resource; `.fileIsDirectory`; `.noPermissionsToReadFile`; `.cannotOpenFile` for a device, fifo or
  ///   socket; `.dataLengthExceedsMaximum` for what memory does not hold; `.resourceUnavailable` for anything
  ///   else, such as a mount that is gone. Its userInfo has the `NSUnderlyingErrorKey`, an error of POSIX, for
  ///   what a system call answered.
  public func load(_ url: URL) throws(URLError) -> LoadedResource {
    guard let resource = try load(url, part: .all, keepsOn: { true }) else { throw URLError(.cancelled) }
    return resource
  }

  /// Finds a resource and describes it, without loading its content.
  /// - Throws: as ``load(_:)``.
  public func describe(_ url: URL) throws(URLError) -> LoadedResource {
    guard let resource = try load(url, part: .description, keepsOn: { true }) else {
      throw URLError(.cancelled)
    }
    return resource
  }

  /// How much of a resource is wanted.
  enum Part: Sendable {
    case description
    case all
  }

  /// Loads a resource.
  /// - Parameter keepsOn: asked now and then whether the resource is still wanted.
  /// - Returns: nil if it is not.
  func load(_ url: URL, part: Part, keepsOn: () -> Bool) throws(URLError) -> LoadedResource? {
    let wanted = try ResourceURL(url)
    do throws(Errno) {
      let opened = try open(wanted)
      switch part {
      case .description: return try opened.described(as: url)
      case .all: return try opened.loaded(as: url, keepsOn: keepsOn)
      }
    } catch {
      throw URLError(error, url)
    }
  }

  private func open(_ wanted: ResourceURL) throws(Errno) -> OpenedResource {
    switch place {
    case .mount(let bundle): try bundle.open(wanted)
    case .layers(let bundle): try bundle.open(wanted)
    }
  }
}

extension ResourceURL {
  /// Takes a URL apart.
  fileprivate init(_ url: URL) throws(URLError) {
    let parts: RouteURL
    do throws(RoutingError) { parts = try RouteURL(Array(url.absoluteString.utf8)) } catch {
      throw URLError(.badURL, url, error.description)
    }
    do throws(ResourceURLError) {
      self = try ResourceURL(
        host: parts.host, segments: parts.segments, localization: parts.parameter("localization"))
    } catch {
      throw URLError(.badURL, url, error.description)
    }
  }
}
