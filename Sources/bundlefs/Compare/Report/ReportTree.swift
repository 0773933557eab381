import Layers
import Posix

/// The tree of a report: nested lists, of which only the folders of differing entries are there.
struct ReportTree {
  private let depth: Int
  /// The path of the folder whose list is open.
  private var folder: [[UInt8]]

  init(start: [[UInt8]]) { (depth, folder) = (start.count, start) }

  /// Closes and opens lists until that of an entry's folder is open.
  mutating func steps(to path: [[UInt8]]) -> String {
    let parent = Array(path.dropLast())
    var common = depth
    while common < min(folder.count, parent.count), folder[common] == parent[common] { common += 1 }
    var text = String(repeating: "</ul></details></li>\n", count: folder.count - common)
    for name in parent[common...] {
      text += "<li><details open><summary><bdi>\(HTMLText.escaped(name))/</bdi></summary>\n<ul>\n"
    }
    folder = parent
    return text
  }

  /// Notes the folder whose list an item has opened.
  mutating func enter(_ path: [[UInt8]]) { folder = path }

  mutating func end() -> String {
    let count = folder.count - depth
    folder = Array(folder.prefix(depth))
    return String(repeating: "</ul></details></li>\n", count: count)
  }

  /// An entry; a folder's list stays open.
  static func item(
    _ entry: ComparisonWalker.Entry, _ labels: [String], _ versions: ReportVersions
  ) -> String {
    let (name, winner) = (entry.name, entry.name.layers.first)
    let isFolder = name.kind == .directory
    let shown = name.status == .merged ? name.layers : Array(name.layers.prefix(1))
    let line = """
      <bdi class="name">\(HTMLText.escaped(name.name))\(isFolder ? "/" : "")</bdi> \
      <span class="verdict">\(verb(name.status))</span> \(shown.map { versions.label($0) }.joined(separator: " "))
      """
    let start =
      "<li class=\"is-\(ComparisonJSON.word(for: name.status)) \(winner.map { versions.colour($0) } ?? "")\">"
    if isFolder { return "\(start)<details open><summary>\(line)</summary>\n<ul>\n" }
    return "\(start)<p class=\"entry\">\(line)</p>\n\(versions.list(of: entry))</li>\n"
  }

  private static func verb(_ status: ComparedName.Status) -> String {
    switch status {
    case .unchanged: ""
    case .overridden: "overridden by"
    case .added: "added by"
    case .hidden: "hidden by"
    case .collision: "in another spelling, too, in"
    case .merged: "merged from"
    case .excluded: "excluded by the option ‘hide’ from"
    }
  }
}
