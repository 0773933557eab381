import Posix

extension LayerDirectory {
  /// A merged table that was found just now.
  /// - Throws: ESTALE if it is not kept any more.
  func table(_ identity: FileIdentity) throws(Errno) -> MergedTables.Table {
    guard let table = gate.tables?.table(identity) else { throw .staleFileHandle }
    return table
  }

  /// Opens a merged table, as a file in memory.
  /// - Throws: as `table`; EMFILE, ENOMEM.
  func openTable(_ identity: FileIdentity) throws(Errno) -> LayerFile {
    let table = try table(identity)
    let file = try withCName(Array("bundlefs-table".utf8)) { name throws(Errno) in
      try Descriptor.memory(name: name)
    }
    try file.writeInOneCall(table.content)
    // A successor takes them from the file.
    var changes = AttributeChanges()
    changes.permissions = table.status.mode & 0o7777
    (changes.owner, changes.group) = (table.status.owner, table.status.group)
    changes.modified = .at(table.status.modified)
    try? file.change(changes)
    return LayerFile(file, fixed: table.status)
  }
}
