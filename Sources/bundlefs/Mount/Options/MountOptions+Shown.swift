import Bundles
import Layers
import Posix
import RemoteFiles
import Routing
import Volume

extension MountOptions {
  /// All options that a remount cannot change, with their defaults, by name. Each value has one form of writing, so that
  /// values can be compared.
  var shown: [String: String] {
    var shown: [String: String] = [:]
    shown["substitution"] = substitutions.map { real(LaidPath(checked: $0)).redacted.shown }.joined(
      separator: ":")
    shown["missing"] = allowsMissing ? "empty" : "error"
    shown["case"] = foldsNames ? "insensitive" : "sensitive"
    shown["strings"] = mergesTables ? "merge" : "override"
    shown["mtime"] = mtime.shown
    shown["log"] = log.shown
    shown["hide"] = hiddenPatterns.map { MountOption.escapedPattern($0).shown }.joined(separator: ":")
    shown["writable"] = writable.shown
    shown["workdir"] = workDirectory.map { real($0).shown } ?? ""
    shown["trust_upper"] = Self.onOff(trustsUpper)
    shown["xattr"] = extendedAttributes.rawValue
    shown["whiteouts"] = whiteouts.rawValue
    shown["rename_copy"] = "\(renameCopy)"
    shown["announce"] = Self.onOff(announces)
    shown["cache"] = cache.description
    shown["http_cache"] = httpCache.map { real($0).shown } ?? ""
    shown["http_cache_size"] = "\(httpCacheSize)"
    shown["http_headers_file"] = absoluteHeadersFile?.shown ?? ""
    shown["http_refresh"] = MountOption.shownSeconds(httpRefresh)
    shown["cache_size"] = cacheSize.map(String.init) ?? ""
    shown["archive_password_file"] = archivePasswordFile.map { real($0).shown } ?? ""
    shown["archive_encoding"] = archiveEncoding?.description ?? ""
    shown["passthrough"] = passthrough.map { String($0) } ?? ""
    shown["routes"] = routes.map { real($0).shown }.joined(separator: ":")
    shown["control"] = control.name.isEmpty ? "none" : control.name.shown
    shown["results"] = String(control.maxResults)
    shown["routes_mode"] = String(control.mode, radix: 8)
    shown["list_routes"] = Self.onOff(control.isListed)
    shown["languages"] = (resources.lookup.languages ?? []).map(\.shown).joined(separator: ":")
    shown["scale"] = resources.lookup.scale.map { "\($0)" } ?? ""
    shown["idiom"] = resources.lookup.idiom.map { "\($0)" } ?? ""
    shown["resource_scheme"] = resources.scheme.isEmpty ? "none" : resources.scheme
    shown["max_read"] = maxRead.map(String.init) ?? ""
    shown["survive"] = Self.onOff(survives)
    shown["watchdog"] = watchdog.map(MountOption.shownSeconds) ?? "off"
    shown["low_latency"] = Self.onOff(lowLatency)
    shown["layer_timeout"] = layerTimeout.map { "\($0)" } ?? ""
    shown["layer_timeout_action"] = skipsOverdueLayers ? "skip" : "error"
    shown.merge(owners.values) { $1 }
    for name in ["allow_other", "allow_root", "auto_unmount"] {
      shown[name] = Self.onOff(passed.contains(Array(name.utf8)))
    }
    return shown
  }

  /// The options that another mount can have, too, as `-o` takes them: without layers, and without those that only mount(8)
  /// or one mount has.
  var reusable: [[UInt8]] {
    let names = shown.keys
    let routes = routes.map { Self.option("routes", real($0)) }
    return lasting.filter { names.contains(MountOption($0).name) } + routes + fileOptions
  }

  /// The options that name files or folders for the daemon's own use, with absolute paths.
  var fileOptions: [[UInt8]] {
    let files = [
      ("archive_password_file", archivePasswordFile.map(real)), ("http_cache", httpCache.map(real)),
      ("http_headers_file", absoluteHeadersFile),
    ]
    return files.compactMap { name, path in path.map { Self.option(name, $0) } }
  }

  /// The file is read again at any time, so its links are kept: a secret is often replaced by moving one.
  var absoluteHeadersFile: [UInt8]? {
    httpHeadersFile.map { path in
      hasResolvedPaths ? path : LayerName.absolute(path, from: LayerName.workingDirectory)
    }
  }

  /// `NAME=PATH`, as `-o` takes it.
  static func option(_ name: String, _ path: [UInt8]) -> [UInt8] {
    Array("\(name)=".utf8) + MountOption.escape(path)
  }

  /// An absolute path without symbolic links, as far as it exists.
  func real(_ path: [UInt8]) -> [UInt8] { hasResolvedPaths ? path : Self.resolved(path) }

  private func real(_ layer: LaidPath) -> LaidPath { hasResolvedPaths ? layer : layer.resolved }

  private static func onOff(_ isOn: Bool) -> String { isOn ? "on" : "off" }

  /// The real path of a directory, a file, or an archive before `!/`; unchanged if there is none.
  static func resolved(_ path: [UInt8]) -> [UInt8] {
    if RemoteURL.isURL(path) { return path }
    if let real = try? realPath(path) { return real }
    guard let mark = path.indices.dropLast().first(where: { path[$0...].starts(with: "!/".utf8) }),
      let archive = try? realPath(Array(path[..<mark]))
    else { return path }
    return archive + path[mark...]
  }
}
