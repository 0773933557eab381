import Posix
import StringTables

/// What becomes of the top layer's table of strings where the target has one, too.
enum AppliedTable {
  /// It replaces the target's, which it hides.
  case alone
  /// Both become one.
  case merged([UInt8])
  /// The target's cannot be merged.
  case impossible

  /// - Throws: what reading one of them throws; ESTALE for what is no regular file.
  init(
    _ name: CName, in source: LayerDirectory, over targetName: CName, in target: LayerDirectory
  ) throws(Errno) {
    let own = try Self.contributor(name, source)
    let parsed = try own.parse(below: nil)
    if parsed.reason != nil || parsed.table.endsMerging {
      self = .alone
      return
    }
    let below = try Self.contributor(targetName, target)
    let other = try below.parse(below: own)
    if other.reason != nil {
      self = .impossible
      return
    }
    let content = StringTable.merge([parsed.table, other.table]).written(
      as: try below.readForPresentReaders())
    self = .merged(other.table.endsMerging ? StringTable.whole(content) : content)
  }

  private static func contributor(
    _ name: CName, _ directory: LayerDirectory
  ) throws(Errno) -> MergedTables.Contributor {
    guard case .file(let status) = try directory.findExact(name, isLikelyDirectory: false), status.isRegular
    else { throw .staleFileHandle }
    return MergedTables.Contributor(directory: directory, name: [UInt8](bytesOf: name), status: status)
  }
}

extension ApplyRun {
  /// Puts both tables, as one, in the place of the target's.
  func mergeTable(
    _ original: CName, in source: LayerDirectory, _ status: FileStatus, to name: CName,
    in parent: LayerDirectory
  ) throws(Errno) {
    guard case .merged(let content) = try AppliedTable(original, in: source, over: name, in: parent),
      case .file(let former) = try parent.findExact(name, isLikelyDirectory: false)
    else { throw .staleFileHandle }
    let file = try source.openFile(original, identity: status.identity)
    _ = try target.replaceTable(name, in: parent, by: content, like: file, former: former) { _ in }
  }
}
