import Posix
import StringTables

/// What the upper layer stores of a table of strings that a program has saved in a mount.
public enum StoredTable: Sendable, Equatable {
  /// The file as it is: no layer below has such a table, it is no table, or it is complete.
  case asItIs
  /// Nothing: the tables of the layers below are the same.
  case nothing
  /// This text: the entries that differ from the layers below, or all with a comment that the table is complete.
  case content([UInt8])
  /// The file as it is, which stays marked: it is a property list with values that no merged table has.
  case marked

  /// Whether another file takes the place of the saved one.
  public var isOtherFile: Bool {
    switch self {
    case .asItIs, .marked: false
    case .nothing, .content: true
    }
  }
}

extension MergedDirectory {
  /// What the upper layer, which is on top, stores of a table that it has whole.
  /// - Throws: errors of the layers; ESTALE if one of the tables was replaced just now.
  public func storedTable(_ name: CName) throws(Errno) -> StoredTable {
    guard let tables = top.gate.tables else { return .asItIs }
    let all = try allContributors(name)
    guard let own = all.first(where: { $0.directory.layer == top.layer && $0.language == nil }) else {
      return .asItIs
    }
    return try tables.stored(own, above: all.filter { !$0.isSame(as: own) })
  }
}

extension MergedTables {
  fileprivate func stored(_ own: Contributor, above below: [Contributor]) throws(Errno) -> StoredTable {
    if own.status.size > Self.largest { return .asItIs }
    let content = try own.readForPresentReaders()
    let parsed = StringTable.parse(content)
    if parsed.error != nil || StringTable.isComplete(content) { return .asItIs }
    // It is not merged.
    if try own.hasAccessList() { return .asItIs }
    let merged = try parse(below, below: own)
    if merged.used.isEmpty { return .asItIs }
    if StringTable.hasOtherValues(content) { return .marked }
    let difference = parsed.table.difference(from: StringTable.merge(merged.tables))
    if difference.lacksKeys { return .content(StringTable.complete(content)) }
    if difference.table.entries.isEmpty, try isSame(own, as: below, merged) { return .nothing }
    return .content(difference.table.written(as: content))
  }

  /// Whether what shows without a table has the same owner, mode and extended attributes.
  private func isSame(
    _ own: Contributor, as below: [Contributor], _ merged: ParsedContributors
  ) throws(Errno) -> Bool {
    guard let next = below.first(where: { $0.language == nil }),
      merged.used.contains(where: { $0.isSame(as: next) })
    else { return false }
    return try own.attributes().isSame(as: next.attributes())
  }
}

extension MergedTables.Contributor {
  fileprivate func attributes() throws(Errno) -> CopiedAttributes {
    let file = try withCName(name) { name throws(Errno) in
      try directory.openPath(name, identity: status.identity)
    }
    return try CopiedAttributes(status, file)
  }
}
