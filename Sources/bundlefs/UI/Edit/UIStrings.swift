import Glibc
import Layers
import Posix
import Routing
import StringTables
import WebServer

/// A table of strings, key by key, with what each layer has.
struct UIStrings {
  private struct Version {
    let layer: Int
    let table: StringTable
  }

  /// Larger tables are not read, in bytes.
  private static let largest = 16 << 20

  let layers: UILayers
  let path: [[UInt8]]

  // MARK: - Reading

  func response() throws(WebError) -> WebResponse {
    let versions = try versions()
    if versions.isEmpty { throw WebError(404, "\(shown(path)): no layer has such a table") }
    var order: [String] = []
    var values: [String: [(layer: Int, value: String)]] = [:]
    for version in versions {
      for entry in version.table.entries {
        if values[entry.key] == nil { order.append(entry.key) }
        values[entry.key, default: []].append((version.layer, entry.value))
      }
    }
    return .json(
      JSONWriter.object { json in
        json.member("path", String(escaping: path.joinedPath))
        json.member("merged", isMerged)
        json.name("keys")
        json.array(order, onLines: true) { json, key in
          json.object { json in
            json.member("key", key)
            json.name("values")
            json.array(values[key] ?? []) { json, value in
              json.object { json in
                json.member("layer", value.layer)
                json.member("value", value.value)
              }
            }
          }
        }
      })
  }

  /// Whether the mount shows the keys of all layers.
  private var isMerged: Bool { layers.status.value["options"]?["strings"]?.string == "merge" }

  /// The tables of the layers that can be read, top first.
  private func versions() throws(WebError) -> [Version] {
    var versions: [Version] = []
    for index in 0..<layers.count {
      guard let layer = try? layers.open(index) else { continue }
      let tables = [try table(of: layer), isMerged ? catalogTable(of: layer) : nil].compactMap { $0 }
      if !tables.isEmpty { versions.append(Version(layer: index, table: StringTable.merge(tables))) }
    }
    return versions
  }

  /// What a layer's catalog contributes; nil for nothing, also of one that cannot be merged, which the status names.
  private func catalogTable(of layer: Layer) -> StringTable? {
    let foldsNames = layers.status.foldsNames
    guard let name = path.last, let folder = path.dropLast().last,
      TableName.isTable(name, foldsNames: foldsNames),
      let language = TableName.language(ofFolder: folder, foldsNames: foldsNames)
    else { return nil }
    let catalog = path.dropLast(2) + [TableName.catalog(ofTable: name)]
    guard let content = try? layer.content(at: Array(catalog), limit: Self.largest) else { return nil }
    let parsed = StringCatalog.parse(content)
    let table = parsed.table.table(ofLanguage: language)
    return parsed.error == nil && !table.entries.isEmpty ? table : nil
  }

  private func table(of layer: Layer) throws(WebError) -> StringTable? { try file(of: layer)?.table }

  /// - Returns: nil if the layer has no file there.
  /// - Throws: 422 for a file that is no table.
  private func file(of layer: Layer) throws(WebError) -> (table: StringTable, content: [UInt8])? {
    let content: [UInt8]?
    do throws(Errno) { content = try layer.content(at: path, limit: Self.largest) } catch {
      throw WebError(409, "\(shown(path)): \(error)")
    }
    guard let content else { return nil }
    let parsed = StringTable.parse(content)
    if let error = parsed.error { throw WebError(422, "\(shown(path)): no table of strings: \(error)") }
    return (parsed.table, content)
  }

  // MARK: - Writing

  /// Sets a key in the top layer's table: where the layer has none, in a new one, or a copy of the one that is shown.
  /// The file keeps its encoding; a property list becomes a text.
  /// - Parameter remains: get what could not be changed back if it fails.
  /// - Throws: 422 for a property list with values that a text cannot have.
  func set(_ key: String, _ value: String, _ remains: UIRemains) throws(WebError) -> UIEdit {
    let top = try WebError.from { () throws(Failure) in try TopLayer(of: layers.mount.mountPoint) }
    defer { top.finish() }
    let placement = try UIPlacement(top, path)
    let (content, own) = try model(in: top)
    var table = own
    table.set(StringTable.Entry(key: key, value: value, comment: table.entry(for: key)?.comment))
    let pending: PendingReplacement
    do throws(Errno) {
      pending = try PendingReplacement(in: top.upper)
      try table.written(as: content).withBytes { bytes throws(Errno) in try pending.append(bytes) }
    } catch {
      throw UIPlacement.failure(error, path)
    }
    return try placement.place(pending, remains, label: "Set '\(key)' in \((path.last ?? []).shown)")
  }

  /// The table to be changed, and the file that has it.
  private func model(in top: TopLayer) throws(WebError) -> (content: [UInt8], table: StringTable) {
    var found = try file(of: .directory(top.upper.layer))
    if found?.table.entries.isEmpty ?? true, !isMerged {
      let view: Layer
      do throws(Errno) { view = try layers.view() } catch { throw WebError(409, "\(error)") }
      found = try file(of: view)
    }
    guard let found else { return ([], StringTable()) }
    if StringTable.hasOtherValues(found.content) {
      throw WebError(422, "\(shown(path)): has values that are no strings, which a table cannot keep")
    }
    return (found.content, found.table)
  }
}
