import Routing
import WebServer

/// Saves, loads and lists profiles for the page.
struct UIProfiles {
  let mount: UIMount

  func list() throws(WebError) -> WebResponse {
    try WebError.from { () throws(Failure) in .json(try ProfileList(mount.status().mounted).json) }
  }

  /// - Parameter body: `save` or `load` with a name; with `replace`, another profile of the name is replaced.
  func response(_ body: UIBody) throws(WebError) -> WebResponse {
    if body.value["save"] == nil { return try load(name(body, "load")) }
    let name = try name(body, "save")
    try WebError.from { () throws(Failure) in
      try MountProfile(mount.mountPoint).save(
        as: name, replacing: body.value["replace"] == .boolean(true))
    }
    return .json("{}")
  }

  private func name(_ body: UIBody, _ member: String) throws(WebError) -> ProfileName {
    let given = Array(try body.string(member).utf8)
    return try WebError.from { () throws(Failure) in try ProfileName(given) }
  }

  private func load(_ name: ProfileName) throws(WebError) -> WebResponse {
    let response = try mount.edits.run { _ throws(WebError) in
      let loaded = try WebError.from { () throws(Failure) in try MountProfile(mount.mountPoint).load(name) }
      return UIEdit(
        label: "Loaded the profile \(name.shown)", note: loaded.note,
        content: .layers(former: loaded.former, set: loaded.set))
    }
    mount.feed.publish("layers", "{}")
    return response
  }
}
