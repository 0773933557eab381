import Routing

/// The layers of a mount as text, a line each, or as JSON.
struct LayersOutput {
  let mounted: MountedLayers
  /// nil if the names were not counted.
  let counts: NameCounts?

  var text: String {
    let rows = mounted.layers.indices.map { index in
      [isMain(index) ? "MAIN" : "\(index + 1)", mounted.layers[index].kind.rawValue, count(of: index)]
    }
    let widths = (0..<3).map { column in rows.map { $0[column].count }.max() ?? 0 }
    let lines = rows.indices.map { index in
      let cells = zip(rows[index], widths).filter { $0.1 > 0 }
      let start = cells.map { $0 + String(repeating: " ", count: $1 - $0.count) + "  " }.joined()
      return start + mounted.layers[index].shown.escapingControls + notes(on: index).escapingControls
    }
    return lines.joined(separator: "\n")
  }

  var json: String {
    var json = JSONWriter()
    write(to: &json, onLines: true)
    return json.text
  }

  /// Writes an array with an object for each layer.
  func write(to json: inout JSONWriter, onLines: Bool) {
    json.array(mounted.layers.indices, onLines: onLines) { json, index in
      json.object { write(index, to: &$0) }
    }
  }

  private func write(_ index: Int, to json: inout JSONWriter) {
    let layer = mounted.layers[index]
    json.member("role", isMain(index) ? "MAIN" : isUpper(index) ? "writable" : "substitution")
    json.member("path", layer.shown)
    json.member("encodedPath", PercentCoding.encoded(path: layer.path))
    json.member("place", layer.place)
    json.member("kind", layer.kind.rawValue)
    json.name("problems")
    json.strings(layer.problems)
    if let counts {
      json.member("names", counts.layers[index].names)
      json.member("hides", counts.layers[index].hides)
    }
  }

  private func isMain(_ index: Int) -> Bool { index == mounted.layers.count - 1 }
  private func isUpper(_ index: Int) -> Bool { index == 0 && mounted.isWritable }

  private func count(of index: Int) -> String {
    guard let layer = counts?.layers[index] else { return "" }
    let names = layer.names == 1 ? "1 name" : layer.names == 0 ? "no name" : "\(layer.names) names"
    return names + (layer.hides == 0 ? "" : ", hides \(layer.hides)")
  }

  private func notes(on index: Int) -> String {
    let notes = (isUpper(index) ? ["writable"] : []) + mounted.layers[index].problems
    return notes.isEmpty ? "" : "  (\(notes.joined(separator: "; ")))"
  }
}
