import Glibc
import Posix
import PropertyLists
import StringTables

/// What a table that was saved is reduced to.
extension MergedDirectory {
  /// What a program is about to save over.
  /// - Returns: nil if the name is no table's, or the layers below have none, so that the upper layer's file is whole anyway.
  /// - Throws: what a layer answers.
  public func tableBase(_ name: CName) throws(Errno) -> TableBase? {
    guard isTable(name), top.layer == 0 else { return nil }
    let own = try ownTable(name)
    let (isBelow, parsed) = (try !tablesBelow(name).isEmpty, try own?.parse(below: nil))
    if !isBelow { return parsed?.isWide == true ? TableBase(own: try own?.readForPresentReaders()) : nil }
    if let parsed, parsed.reason != nil || parsed.table.endsMerging { return TableBase() }
    guard case .file(let layer, let status) = try lookup(name), status.isRegular,
      status.size <= MergedTables.largest, let part = part(of: layer, with: name, status.identity)
    else { return TableBase() }
    let shown = try part.openFile(name, identity: status.identity).readAll(limit: MergedTables.largest)
    return TableBase(shown: shown, own: try own?.readForPresentReaders(), merged: own?.status.identity)
  }

  private func ownTable(_ name: CName) throws(Errno) -> MergedTables.Contributor? {
    guard case .file(let status) = try top.find(name), status.isRegular else { return nil }
    return MergedTables.Contributor(directory: top, name: [UInt8](bytesOf: name), status: status)
  }

  /// The tables of the layers below the upper one, whether that hides them or not.
  /// - Throws: what a layer answers: without it nothing can be said of what a program has changed.
  private func tablesBelow(_ name: CName) throws(Errno) -> [MergedTables.Contributor] {
    if let missing { throw missing.error }
    var found: [MergedTables.Contributor] = []
    for (position, part) in parts.enumerated() where part.layer > 0 && isFirst(position) {
      let twins = position..<end(ofLayerAt: position)
      guard let status = try table(name, in: twins) else { break }
      if let status = status.file, let holder = self.part(of: part.layer, with: name, status.identity) {
        let name = [UInt8](bytesOf: name)
        found.append(MergedTables.Contributor(directory: holder, name: name, status: status))
      }
      if try hasWhiteoutMarker(name, length: strlen(name), in: twins) { break }
    }
    return found
  }

  /// The upper layer's file of a table that a program saves; nil if it has none now.
  public func savedTable(_ name: CName) throws(Errno) -> FileStatus? { try ownTable(name)?.status }

  /// Whether the upper layer's table has a content.
  public func tableHasContent(_ name: CName, _ content: [UInt8]) throws(Errno) -> Bool {
    guard let own = try ownTable(name), own.status.size == content.count else { return false }
    return try own.readForPresentReaders() == content
  }

  /// What the upper layer shall have in place of a table that was saved.
  /// - Returns: nil if it stays as it is.
  /// - Throws: what a layer answers.
  public func reducedTable(_ name: CName, _ base: TableBase) throws(Errno) -> ReducedTable? {
    guard let saved = try ownTable(name) else { return nil }
    let parsed = try saved.parse(below: nil)
    if parsed.reason != nil || parsed.table.endsMerging { return nil }
    let content = try saved.readForPresentReaders()
    var below: [StringTable] = []
    let contributors = try tablesBelow(name)
    for contributor in contributors {
      let parsed = try contributor.parse(below: saved)
      if parsed.reason == nil { below.append(parsed.table) }
    }
    let reduced: [UInt8]
    if below.isEmpty {
      reduced = StringTable.transcode(content, as: base.own ?? content)
    } else {
      let table = SavedTable(
        parsed.table, below: .merge(below), base: base.shown.map { StringTable.parse($0).table },
        own: base.own.map { StringTable.parse($0).table } ?? StringTable())
      reduced = table.difference?.written(as: base.own ?? content) ?? StringTable.whole(content)
    }
    return reduced == content ? nil : ReducedTable(content: reduced, saved: content, below: contributors)
  }

  /// Has a table, which the upper layer has reduced now, shown as it was saved.
  public func show(_ table: ReducedTable, as name: CName, _ status: FileStatus) {
    let own = MergedTables.Contributor(directory: top, name: [UInt8](bytesOf: name), status: status)
    top.gate.tables?.show(table.saved, for: [own] + table.below)
  }
}

/// What a table that was saved is reduced to.
public struct ReducedTable: Sendable {
  public let content: [UInt8]
  fileprivate let saved: [UInt8]
  /// The tables of the layers below, as they are.
  fileprivate let below: [MergedTables.Contributor]
}
