import Bundles
import ControlClient
import Glibc
import Layers
import Posix
import Routing
import Volume

/// `bundlefs resources MOUNTPOINT [--type EXTENSION] [--localization NAME] [--json]`.
struct ResourcesCommand {
  private let mountPoint: MountPoint
  private var type: [UInt8]?
  private var localization: [UInt8]?
  private var isJSON = false

  init(_ arguments: [[UInt8]]) throws(Failure) {
    var operands: [[UInt8]] = []
    var rest = arguments[...]
    while let argument = rest.popFirst() {
      switch argument.shown {
      case "--json": isJSON = true
      case "--type": type = try Self.value(of: "--type", &rest)
      case "--localization": localization = try Self.value(of: "--localization", &rest)
      case let text where text.hasPrefix("-") && text.count > 1:
        throw .unknownOption(text, of: "resources")
      default: operands.append(argument)
      }
    }
    guard operands.count == 1 else { throw .usage("'resources' needs one MOUNTPOINT") }
    if let localization {
      do throws(ResourceURLError) { try ResourceURL.validate(localization: localization) } catch {
        throw .usage("'--localization \(localization.shown)': \(error)")
      }
    }
    if type?.first == UInt8(ascii: ".") { type?.removeFirst() }
    mountPoint = try MountPoint(mounted: operands[0])
  }

  private static func value(of option: String, _ rest: inout ArraySlice<[UInt8]>) throws(Failure) -> [UInt8] {
    guard let value = rest.popFirst(), !value.isEmpty else { throw .usage("'\(option)' needs a value") }
    return value
  }

  func run() throws(Failure) {
    let rows = try Failure.naming(mountPoint.path.shown, rows)
    if isJSON {
      var json = JSONWriter()
      json.array(rows, onLines: true) { $1.write(to: &$0) }
      Terminal.print(json.text)
    } else {
      for line in ResourceRow.lines(of: rows) { Terminal.print(line) }
    }
  }

  /// Lists the mount as a bundle of one layer, by the mount's own layout and languages.
  private func rows() throws(Errno) -> [ResourceRow] {
    let settings = try StatusClient.read(.resources, at: mountPoint.path)
      .split(separator: 0, omittingEmptySubsequences: false).dropLast().map { Array($0) }
    guard let folder = settings.first?.split(separator: UInt8(ascii: "/")).map({ Array($0) }),
      let layout = BundleLayout.allCases.first(where: { $0.resourceFolder == folder })
    else { throw .ioError }
    let control = try ControlFileLocation(mountPoint: mountPoint.path).name
    let mount = try DirectoryLayer(path: mountPoint.path, index: 0, covered: nil, clonesMount: false)
    let lookup = ResourceLookup(
      stack: LayerStack(layers: [.directory(mount)]),
      options: ResourceOptions(languages: settings.dropFirst().dropLast()), layout: layout)
    let types = MIMETypes()
    let listed = try lookup.list(type: type, localization: localization).filter { $0.path != [control] }
    return try listed.map { resource throws(Errno) in try ResourceRow(resource, lookup, types) }
  }
}

private struct ResourceRow {
  let path: String
  let localization: String?
  let mimeType: String
  /// The path of the resource's layer; nil for a dangling symbolic link, and with the mount option `xattr=off`.
  let layer: String?

  init(_ resource: ListedResource, _ lookup: ResourceLookup, _ types: MIMETypes) throws(Errno) {
    path = String(escaping: resource.path.joinedPath)
    localization = resource.localization.map { String(escaping: $0) }
    (mimeType, layer) = try Self.details(of: resource, lookup, types)
  }

  private static func details(
    of resource: ListedResource, _ lookup: ResourceLookup, _ types: MIMETypes
  ) throws(Errno) -> (mimeType: String, layer: String?) {
    do throws(Errno) {
      guard let found = try lookup.resource(at: resource.path) else { return ("inode/symlink", nil) }
      let layer = try found.extendedAttribute("user.bundlefs.layer")
      return (try found.mimeType(by: types), layer.map { String(escaping: $0) })
    } catch {
      // Listing does not imply permission to read, and the file may have been removed or replaced since.
      let expected: [Errno] = [.permissionDenied, .noSuchFileOrDirectory, .staleFileHandle, .isDirectory]
      guard expected.contains(error) else { throw error }
      return (types.type(forName: resource.path.last ?? []) ?? "application/octet-stream", nil)
    }
  }

  func write(to json: inout JSONWriter) {
    json.object { json in
      json.member("path", path)
      json.member("localization", localization)
      json.member("mimeType", mimeType)
      json.member("layer", layer)
    }
  }

  /// Longer cells stick out instead of widening their column.
  private static let maxColumnWidth = 60

  static func lines(of rows: [ResourceRow]) -> [String] {
    let cells = rows.map { row in
      [row.path, row.localization ?? "-", row.mimeType, row.layer ?? "-"].map { $0.escapingControls }
    }
    let widths = (0..<3).map { column in min(maxColumnWidth, cells.map { $0[column].count }.max() ?? 0) }
    return cells.map { row in
      zip(row, widths).map { $0 + String(repeating: " ", count: max(0, $1 - $0.count)) + "  " }.joined()
        + row[3]
    }
  }
}
