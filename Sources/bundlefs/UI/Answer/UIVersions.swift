import Bundles
import Layers
import Posix
import Routing
import WebServer

/// What all layers have at a path, as JSON.
struct UIVersions {
  private struct Version {
    let layer: Int
    let entry: LayerEntry
    let error: String?
  }

  let layers: UILayers
  let path: [[UInt8]]
  let types: MIMETypes

  func json() throws(Failure) -> String {
    let shown = try compared()
    let versions = (0..<layers.count).compactMap { version(of: $0, shown) }
    return JSONWriter.object { json in
      json.member("path", String(escaping: path.joinedPath))
      json.member("encodedPath", PercentCoding.encoded(path: path.joinedPath))
      json.member("merged", shown?.status == .merged)
      json.name("versions")
      json.array(versions) { json, version in
        json.object { write(version, isWinner: isWinner(version.layer, shown), to: &$0) }
      }
    }
  }

  /// What the daemon says of the name; nil for the root, and where it says nothing.
  private func compared() throws(Failure) -> ComparedName? {
    if path.isEmpty { return nil }
    do throws(Errno) {
      var walker = try ComparisonWalker(
        of: layers.mount.mountPoint, from: [], includesUnchanged: true, showsProgress: false)
      return try walker.name(at: path)
    } catch {
      if error == .noSuchFileOrDirectory || error == .fileTooLarge || error == .notDirectory { return nil }
      throw .failed("\(shown(path)): \(ComparisonWalker.Fault(path: path, error: error).reason)")
    }
  }

  private func isWinner(_ layer: Int, _ name: ComparedName?) -> Bool {
    guard let name, name.status != .hidden, name.status != .excluded, name.status != .collision else {
      return false
    }
    return name.status == .merged ? name.layers.contains(layer) : name.layers.first == layer
  }

  private func version(of index: Int, _ name: ComparedName?) -> Version? {
    do throws(WebError) {
      let layer = try layers.open(index)
      let entry: LayerEntry
      do throws(Errno) { entry = try layer.entry(at: path) } catch {
        return Version(layer: index, entry: .nothing, error: "\(error)")
      }
      if case .nothing = entry { return nil }
      return Version(layer: index, entry: entry, error: nil)
    } catch {
      // The daemon can tell whether it has one.
      guard name?.layers.contains(index) == true else { return nil }
      return Version(layer: index, entry: .nothing, error: error.message)
    }
  }

  private func write(_ version: Version, isWinner: Bool, to json: inout JSONWriter) {
    json.member("layer", version.layer)
    json.member("winner", isWinner)
    if let error = version.error { json.member("error", error) }
    switch version.entry {
    case .nothing: json.member("kind", "unknown")
    case .whiteout: json.member("kind", "hidden")
    case .directory(let status):
      json.member("kind", "directory")
      json.member("modified", status.modified.seconds)
    case .file(let status, let parent): write(status, parent, version.layer, to: &json)
    }
    if case .file(let status, _) = version.entry, status.isRegular { return }
    json.member("content", String?.none)
  }

  private func write(
    _ status: FileStatus, _ parent: LayerDirectory, _ layer: Int, to json: inout JSONWriter
  ) {
    json.member("kind", status.kind.map(ComparisonJSON.word) ?? "unknown")
    json.member("size", status.size)
    json.member("modified", status.modified.seconds)
    if status.isRegular {
      json.member("type", UIFileType(types, path.last ?? []).shown)
      json.member(
        "content", "content/\(layers.mount.id)/\(layer)/" + PercentCoding.encoded(path: path.joinedPath))
    } else if status.kind == .symbolicLink, let name = path.last {
      let target = try? withCName(name) { name throws(Errno) in
        try parent.openPath(name, identity: status.identity).linkTarget()
      }
      json.member("target", target.map { String(escaping: $0) })
    }
  }
}

/// The type of a file, as the page shows it and as its content is sent.
struct UIFileType {
  /// By the file's name.
  let shown: String

  init(_ types: MIMETypes, _ name: [UInt8]) {
    shown = types.type(forName: name) ?? "application/octet-stream"
  }

  /// What browsers take for a part of the page, from wherever it is referred to, is sent as plain text.
  var sent: String {
    let isText = shown.hasPrefix("text/") && shown != "text/html"
    let isCode = ["javascript", "ecmascript", "json", "xml", "wasm"].contains { shown.contains($0) }
    if shown == "image/svg+xml" || shown == "application/xhtml+xml" { return shown }
    return isText || isCode ? "text/plain; charset=utf-8" : shown
  }
}
