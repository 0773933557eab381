import Bundles
import Posix
import Routing
import WebServer

/// What a mount answers to questions of the page, in the JSON of the commands.
struct UIAnswers {
  let mount: UIMount
  let types: MIMETypes

  func status() throws(WebError) -> WebResponse {
    do throws(Errno) { return .json(try mount.statusText().shown) } catch {
      throw WebError(409, "\(mount.mountPoint.path.shown): \(error)")
    }
  }

  /// - Parameter counts: whether the names of each layer are counted, which takes as long as the tree.
  func layers(counts: Bool) throws(WebError) -> WebResponse {
    try WebError.from { () throws(Failure) in
      let mounted = try mount.status().mounted
      let counts = !counts ? nil : try NameCounts(of: mount.mountPoint, mounted, showsProgress: false)
      return .json(LayersOutput(mounted: mounted, counts: counts).json)
    }
  }

  /// - Parameter path: of an entry, which is listed with what is beneath it; nil for the whole tree.
  func tree(_ path: [UInt8]?) throws(WebError) -> WebResponse {
    let start = try UIBody.components(path ?? [])
    do throws(Errno) {
      return WebResponse(
        type: "application/json", .stream(try UITreeStream(of: mount.mountPoint, from: start), count: nil))
    } catch {
      let reason = ComparisonWalker.Fault(path: [], error: error).reason
      throw WebError(409, "\(mount.mountPoint.path.shown): \(reason)")
    }
  }

  /// - Parameter path: of a property list.
  func text(_ path: [UInt8]?, layer: [UInt8]?) throws(WebError) -> WebResponse {
    guard let index = layer.flatMap({ Int($0.shown) }) else {
      throw WebError(400, "the request needs 'layer'")
    }
    let layers = UILayers(mount: mount, status: try mount.webStatus())
    return try UIText(layers: layers, path: UIBody.components(path ?? [])).response(layer: index)
  }

  /// - Parameter path: of a table of strings.
  func strings(_ path: [UInt8]?) throws(WebError) -> WebResponse {
    let layers = UILayers(mount: mount, status: try mount.webStatus())
    return try UIStrings(layers: layers, path: try UIBody.components(path ?? [])).response()
  }

  /// - Parameter path: relative to the mount's root.
  func versions(_ path: [UInt8]?) throws(WebError) -> WebResponse {
    guard let path, let names = WebText.components(of: path, isEncoded: false) else {
      throw WebError(400, "the request needs a path without empty components, '.' and '..'")
    }
    let layers = UILayers(mount: mount, status: try mount.webStatus())
    mount.feed.show(names, layers)
    return try WebError.from { () throws(Failure) in
      .json(try UIVersions(layers: layers, path: names, types: types).json())
    }
  }
}
