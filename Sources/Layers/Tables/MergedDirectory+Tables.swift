import CLibrary
import Posix

extension MergedDirectory {
  /// Whether a name may be that of tables that are merged.
  public func isTable(_ name: CName) -> Bool {
    TableName.isTable(name, length: strlen(name), foldsNames: foldsNames) && top.gate.tables != nil
  }

  /// The replacement of a table that was found: it is merged with those below, or converted; nil if it is shown as it is, or if
  /// tables are not to be merged.
  ///
  /// As for directories, whiteouts and entries of another kind hide what is below them.
  /// - Parameter index: of the part that has the topmost one.
  /// - Throws: what the layers below answer, unless that means that they have failed.
  func table(
    _ name: CName, length: Int, _ first: FileStatus, at index: Int
  ) throws(Errno) -> MergedTables.Table? {
    guard first.isRegular,
      TableName.isTable(name, length: length, foldsNames: foldsNames),
      let tables = top.gate.tables
    else { return nil }
    let bytes = [UInt8](bytesOf: name)
    for _ in 0..<16 {
      let all = try contributors(name, bytes, first, at: index)
      do throws(Errno) { return try tables.table(of: all) } catch {
        // One of them was replaced just now.
        guard error == .staleFileHandle || error == .noSuchFileOrDirectory else { throw error }
      }
    }
    throw .staleFileHandle
  }

  /// How a name compares if it is a merged table; nil for others.
  func comparedTable(_ name: ComparedName, _ tables: MergedTables) throws(Errno) -> ComparedName? {
    let isShown = name.status == .overridden || name.status == .added
    let hasSeveral = name.layers.count > 1 && isShown
    guard name.kind == .regular, hasSeveral || (languageFolder != nil && name.status != .hidden),
      TableName.isTable(name.name, foldsNames: foldsNames)
    else { return nil }
    let found = try withCName(name.name) { name throws(Errno) in try lookup(name) }
    guard case .file(_, let status) = found else { return nil }
    let layers = tables.layers(of: status.identity)
    // A single table is only converted, or has keys of its own layer's catalog.
    if layers.isEmpty || (!hasSeveral && layers.count == 1) { return nil }
    let keys = try withCName(name.name) { name throws(Errno) in try comparedKeys(name, tables) }
    return ComparedName(name: name.name, kind: name.kind, status: .merged, layers: layers, keys: keys)
  }

  private func comparedKeys(_ name: CName, _ tables: MergedTables) throws(Errno) -> ComparedKeys {
    let all = try allContributors(name)
    guard let top = all.first(where: { $0.language == nil }) else { return ComparedKeys() }
    do throws(Errno) {
      let merged = try tables.parse(all, below: top)
      return ComparedKeys(zip(merged.tables, merged.used).map { ($0, $1.directory.layer) })
    } catch {
      // One of them was replaced just now.
      guard error == .staleFileHandle || error == .noSuchFileOrDirectory else { throw error }
      return ComparedKeys()
    }
  }

  /// The tables of a name and the catalogs that contribute to them, the topmost first.
  func allContributors(_ name: CName) throws(Errno) -> [MergedTables.Contributor] {
    let bytes = [UInt8](bytesOf: name)
    let found = try contributors(name, bytes, from: 0, top: nil)
    return try languageFolder?.addingCatalogs(to: found, named: bytes) ?? found
  }

  private func contributors(
    _ name: CName, _ bytes: [UInt8], _ first: FileStatus, at index: Int
  ) throws(Errno) -> [MergedTables.Contributor] {
    let holder = part(of: parts[index].layer, with: name, first.identity) ?? parts[index]
    let present = try holder.attributes(of: name)
    let top = MergedTables.Contributor(directory: holder, name: bytes, status: present)
    let tables = try contributors(name, bytes, from: index, top: top)
    return try languageFolder?.addingCatalogs(to: tables, named: bytes) ?? tables
  }

  /// The files of a name that layers have, the topmost first, down to what hides those below it.
  /// - Parameters:
  ///   - index: of the first part.
  ///   - top: what this part has, if it was found before.
  ///   - language: of catalogs, the one that is wanted.
  func contributors(
    _ name: CName, _ bytes: [UInt8], from index: Int, top: MergedTables.Contributor?, language: [UInt8]? = nil
  ) throws(Errno) -> [MergedTables.Contributor] {
    var found = [top].compactMap { $0 }
    for (position, part) in parts.enumerated().dropFirst(index)
    where !part.gate.isSkipped && isFirst(position) {
      do throws(Errno) {
        let twins = position..<end(ofLayerAt: position)
        if position > index || top == nil {
          guard let status = try table(name, in: twins) else { break }
          if let status = status.file, let holder = self.part(of: part.layer, with: name, status.identity) {
            found.append(
              MergedTables.Contributor(directory: holder, name: bytes, status: status, language: language))
          }
        }
        if try hasWhiteoutMarker(name, length: bytes.count, in: twins) { break }
      } catch {
        if !error.isFileSystemFailure { throw error }
      }
    }
    return found
  }

  /// - Parameter range: of a layer's parts.
  /// - Returns: nil if it hides the layers below; without a file if it has nothing of the name.
  private func table(_ name: CName, in range: Range<Int>) throws(Errno) -> (file: FileStatus?, Void)? {
    switch try find(name, in: range, isLikelyDirectory: false).0 {
    case .nothing: (nil, ())
    case .file(let status): status.isRegular ? (status, ()) : nil
    case .whiteout, .directory: nil
    }
  }
}
