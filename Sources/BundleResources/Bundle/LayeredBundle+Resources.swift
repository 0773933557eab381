import Bundles
import Foundation
import Layers
import Posix

extension LayeredBundle {
  // MARK: - Resources

  /// Finds a resource; nil if there is none.
  ///
  /// With a scale or an idiom among the options, an image's variants are tried.
  /// - Parameters:
  ///   - name: the name without the extension, or with it; nil or empty for the first resource with the extension.
  ///   - ext: the extension, with or without its dot; nil or empty if the name has it.
  ///   - subpath: a directory below the resource directory or a localization's directory.
  ///   - localizationName: the only localization to search, besides its parents (`fr` for `fr-CA`) and unlocalized
  ///     resources; nil for the preferred ones.
  /// - Returns: a file URL; for a resource that is stored in an archive, a resource URL that names this bundle
  ///   (`rsrc://bundle-1/logo.png`), with a scheme for which the bundle is registered, or else `rsrc`.
  ///   ``ResourceURLProtocol/configuration`` and ``ResourceSource`` load it while the bundle exists.
  public func url(
    forResource name: String?, withExtension ext: String? = nil, subdirectory subpath: String? = nil,
    localization localizationName: String? = nil
  ) -> URL? {
    guard let name, !name.isEmpty else {
      if (ext ?? "").isEmpty { return nil }
      return urls(forResourcesWithExtension: ext, subdirectory: subpath, localization: localizationName).first
    }
    guard let layers = try? layers() else { return nil }
    let query = ResourceQuery(name: name, ext: ext, subpath: subpath, localization: localizationName)
    return layers.url(query) { () throws(Errno) in try url(of: query, in: layers) }
  }

  private func url(of query: ResourceQuery, in layers: LayerReader) throws(Errno) -> URL? {
    let path = Self.path(query.name, query.ext, query.subpath)
    let found = try layers.lookup.find(path, localization: query.localization.map { Array($0.utf8) })
    guard let found, found.attributes.kind != .symbolicLink else { return nil }
    return url(
      of: found.path, layer: found.layer, isDirectory: found.attributes.isDirectory, in: layers)
  }

  /// Lists the resources with an extension in all layers and preferred localizations, each once, sorted by path.
  /// - Parameters:
  ///   - ext: the extension; nil or empty for all resources.
  ///   - subpath: as for `url(forResource:withExtension:subdirectory:localization:)`.
  ///   - localizationName: as for `url(forResource:withExtension:subdirectory:localization:)`.
  public func urls(
    forResourcesWithExtension ext: String?, subdirectory subpath: String? = nil,
    localization localizationName: String? = nil
  ) -> [URL] {
    guard let layers = try? layers() else { return [] }
    let listed = try? layers.lookup.list(
      type: ext.map { Array(Self.withoutDot($0).utf8) }, in: Self.names(subpath ?? ""),
      localization: localizationName.map { Array($0.utf8) })
    return (listed ?? []).compactMap { resource in
      url(
        of: resource.path, layer: resource.layer, isDirectory: resource.kind == .directory, in: layers)
    }
  }

  /// The path of a resource's file; nil if there is none, and for one in an archive.
  /// Parameters as for `url(forResource:withExtension:subdirectory:localization:)`.
  public func path(
    forResource name: String?, ofType ext: String? = nil, inDirectory subpath: String? = nil,
    forLocalization localizationName: String? = nil
  ) -> String? {
    let url = url(
      forResource: name, withExtension: ext, subdirectory: subpath, localization: localizationName)
    return url.flatMap { $0.isFileURL ? $0.path : nil }
  }

  /// The paths of the resources' files, as `urls(forResourcesWithExtension:subdirectory:localization:)` lists them.
  public func paths(
    forResourcesOfType ext: String?, inDirectory subpath: String? = nil,
    forLocalization localizationName: String? = nil
  ) -> [String] {
    urls(forResourcesWithExtension: ext, subdirectory: subpath, localization: localizationName)
      .filter(\.isFileURL).map(\.path)
  }

  /// Loads a resource. Parameters as for `url(forResource:withExtension:subdirectory:localization:)`.
  /// - Throws: `URLError`: `.fileDoesNotExist`; `.fileIsDirectory`; `.noPermissionsToReadFile`; `.cannotOpenFile` for a
  ///   device, fifo or socket; `.dataLengthExceedsMaximum` for a file that does not fit in memory; `.badURL` for a
  ///   `..` in the name; `.resourceUnavailable` for any other error, such as an unmounted bundle.
  public func data(
    forResource name: String, withExtension ext: String? = nil, subdirectory subpath: String? = nil,
    localization localizationName: String? = nil
  ) throws(URLError) -> Data {
    try opened(Self.path(name, ext, subpath), localizationName) { resource throws(Errno) in
      try resource.load(as: bundleURL) { true }?.data ?? Data()
    }
  }

  private func opened<Value>(
    _ path: [[UInt8]], _ localization: String?, _ body: (borrowing OpenedResource) throws(Errno) -> Value
  ) throws(URLError) -> Value {
    let resource: ResourceURL
    do throws(ResourceURLError) {
      resource = try ResourceURL(host: nil, segments: path, localization: localization.map { Array($0.utf8) })
    } catch { throw failure(.badURL, path, error.description) }
    do throws(Errno) { return try body(try layers().open(resource)) } catch {
      let reason = error == .noSuchFileOrDirectory ? "there is no such resource" : error.description
      throw failure(URLError.code(of: error), path, reason, error)
    }
  }

  /// Opens a resource to read its content piece by piece, which needs little memory for a file of any size.
  /// - Parameters:
  ///   - name: the name without the extension, or with it.
  ///   - ext: the extension, with or without its dot; nil or empty if the name has it.
  ///   - subpath: as for `url(forResource:withExtension:subdirectory:localization:)`.
  ///   - localizationName: as for `url(forResource:withExtension:subdirectory:localization:)`.
  ///   - range: the bytes to read; nil for all.
  /// - Throws: `URLError` as `data(forResource:withExtension:subdirectory:localization:)`; `.cancelled` as soon as the task is
  ///   cancelled.
  public func bytes(
    forResource name: String, withExtension ext: String? = nil, subdirectory subpath: String? = nil,
    localization localizationName: String? = nil, range: Range<Int>? = nil
  ) async throws(URLError) -> ResourceBytes {
    let path = Self.path(name, ext, subpath)
    return try await loaders.result { [self] in
      Result { () throws(URLError) in
        try opened(path, localizationName) { resource throws(Errno) in
          try resource.bytes(as: bundleURL, range: range.map(RequestedRange.init), loaders)
        }
      }
    }.get()
  }

  /// An error that names the bundle and the resource: a resource that was not found has no URL.
  private func failure(
    _ code: URLError.Code, _ path: [[UInt8]], _ reason: String, _ errno: Errno? = nil
  ) -> URLError {
    let name = path.map { String(decoding: $0, as: UTF8.self) }.joined(separator: "/")
    return URLError(code, bundleURL, "'\(name)': \(reason)", errno)
  }

  // MARK: - Localizations

  /// The localizations of all layers, sorted, with `Base`.
  public var localizations: [String] {
    ((try? layers().lookup.localizations()) ?? []).map { String(decoding: $0, as: UTF8.self) }
  }

  /// The localizations of the bundle that are searched, in order, without `Base`.
  public var preferredLocalizations: [String] {
    guard let lookup = try? layers().lookup, let searched = try? lookup.searchedLocalizations(),
      let present = try? lookup.localizations()
    else { return [] }
    var preferred: [[UInt8]] = []
    for name in searched where !name.elementsEqual("Base".utf8) {
      for folder in Language.folderNames(of: name) {
        guard let spelling = Language.localization(ofFolder: folder), present.contains(spelling) else {
          continue
        }
        if !preferred.contains(spelling) { preferred.append(spelling) }
      }
    }
    return preferred.map { String(decoding: $0, as: UTF8.self) }
  }

  /// The bundle's native localization, CFBundleDevelopmentRegion of Info.plist; nil without it.
  public var developmentLocalization: String? { try? layers().lookup.infoPlist().developmentRegion }

  // MARK: - Names

  static func names(_ path: String) -> [[UInt8]] {
    path.utf8.split(separator: UInt8(ascii: "/")).map { Array($0) }
  }

  private static func withoutDot(_ ext: String) -> String { ext.first == "." ? String(ext.dropFirst()) : ext }

  private static func path(_ name: String, _ ext: String?, _ subpath: String?) -> [[UInt8]] {
    let ext = ext.map(withoutDot).flatMap { $0.isEmpty ? nil : "." + $0 } ?? ""
    return names(subpath ?? "") + names(name + ext)
  }
}
