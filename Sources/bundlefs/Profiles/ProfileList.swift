import Routing

/// The profiles of a user, beside a mount.
struct ProfileList {
  private struct Row {
    let name: String
    let file: [UInt8]
    let layers: [[UInt8]]
    /// Whether the mount has just these layers.
    let isPresent: Bool
    let error: String?
  }

  private let rows: [Row]

  init(_ mounted: MountedLayers) throws(Failure) {
    let folder = try ProfileFolder()
    let present = mounted.order.substitutions
    rows = try folder.names().map { name in
      let file = folder.file(of: name)
      do throws(Failure) {
        let layers = try Profile(name, in: folder).layers
        let isPresent = layers.map(MountOptions.resolved) == present
        return Row(name: name.shown, file: file, layers: layers, isPresent: isPresent, error: nil)
      } catch {
        return Row(name: name.shown, file: file, layers: [], isPresent: false, error: error.message)
      }
    }
  }

  var text: String {
    let width = rows.map(\.name.count).max() ?? 0
    let lines = rows.map { row in
      let count = row.layers.count == 1 ? "1 layer" : "\(row.layers.count) layers"
      let name = row.name + String(repeating: " ", count: width - row.name.count)
      return "\(row.isPresent ? "*" : " ") \(name)  \(row.error?.escapingControls ?? count)\n"
    }
    return lines.joined()
  }

  var json: String {
    var json = JSONWriter()
    json.array(rows, onLines: true) { json, row in
      json.object { json in
        json.member("name", row.name)
        json.member("file", row.file.shown)
        json.name("layers")
        json.strings(row.layers.map(\.shown))
        json.member("present", row.isPresent)
        json.member("error", row.error)
      }
    }
    return json.text
  }
}
