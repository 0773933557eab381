import Routing
import WebServer

/// What the page wants to be done to a mount.
struct UIOrders {
  let mount: UIMount
  let body: UIBody

  func response(_ word: String) throws(WebError) -> WebResponse {
    switch word {
    case "layers": return try setLayers()
    case "override", "revert", "hide": return try edit(word)
    case "strings": return try setString()
    case "undo":
      guard let id = Int(try body.string("undo")) else { throw WebError(400, "'undo' must be a number") }
      return try mount.edits.undo(id)
    case "routes":
      let isMatch = body.value["match"] == .boolean(true)
      return try UIRoutes(mountPoint: mount.mountPoint).response(try body.string("url"), isMatch: isMatch)
    case "open": return try UIBrowser.show(try body.path(), in: mount.mountPoint)
    case "profiles": return try UIProfiles(mount: mount).response(body)
    default: throw UIHandler.notFound
    }
  }

  private func setLayers() throws(WebError) -> WebResponse {
    let layers = try body.layers()
    let response = try mount.edits.run { _ throws(WebError) in
      try UILayerChange(mount.mountPoint).set(layers)
    }
    mount.feed.publish("layers", "{}")
    return response
  }

  private func edit(_ word: String) throws(WebError) -> WebResponse {
    guard let action = UIEntryEdit.Action(rawValue: word) else { throw UIHandler.notFound }
    let paths = try body.paths()
    return try mount.edits.run { remains throws(WebError) in
      try UIEntryEdit.run(action, paths, of: mount.mountPoint, remains)
    }
  }

  private func setString() throws(WebError) -> WebResponse {
    let strings = UIStrings(
      layers: UILayers(mount: mount, status: try mount.webStatus()), path: try body.path())
    let (key, value) = (try body.string("key"), try body.string("value"))
    return try mount.edits.run { remains throws(WebError) in try strings.set(key, value, remains) }
  }
}
