import Posix
import TestSupport

/// All that a folder has, with what is known of each entry.
struct LayerPicture: Equatable, CustomStringConvertible {
  private var entries: [ByteString: String] = [:]

  init(of folder: ByteString) throws {
    try add(folder, "")
    for (name, _) in entries where name.text.contains(".wh..wh.bundlefs-work") { entries[name] = nil }
  }

  private mutating func add(_ path: ByteString, _ name: ByteString) throws {
    let status = try path.status()
    var text = "\(String(describing: status.kind)) \(String(status.permissions, radix: 8)) \(status.modified)"
    switch status.kind {
    case .regular: text += " \(try path.readText())"
    case .symbolicLink: text += " \(try path.linkTarget())"
    case .directory: for inner in try path.names() { try add(path / inner, name / inner) }
    default: text += " \(status.rdev)"
    }
    entries[name] = text
  }

  /// The names whose entries differ.
  func differences(from other: LayerPicture) -> [String] {
    Set(entries.keys).union(other.entries.keys).filter { entries[$0] != other.entries[$0] }.sorted().map {
      "\($0): \(entries[$0] ?? "-") / \(other.entries[$0] ?? "-")"
    }
  }

  var description: String {
    entries.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }.joined(separator: "\n")
  }
}
