import Posix

/// What a process that continues with a mount, or the next mount, has to know of a table that was being saved.
public struct TableRecord: Sendable, Equatable {
  /// The table's path from the root.
  public var path: [[UInt8]]
  public var base: TableBase
  /// What the table is about to be reduced to.
  public var result: [UInt8]?

  public init(path: [[UInt8]], base: TableBase) { (self.path, self.base) = (path, base) }

  private static let head = Array("bundlefs table 1\n".utf8)

  /// The fields, each behind its length.
  var encoded: [UInt8] {
    let path = Array(path.joined(separator: [UInt8(ascii: "/")]))
    return [path, base.shown, base.own, result].reduce(into: Self.head) { bytes, field in
      withUnsafeBytes(of: (field.map { UInt64($0.count) } ?? .max).littleEndian) { bytes += $0 }
      bytes += field ?? []
    }
  }

  /// - Returns: nil for what `encoded` does not make.
  init?(_ bytes: [UInt8]) {
    guard bytes.starts(with: Self.head) else { return nil }
    var (rest, fields): (ArraySlice<UInt8>, [[UInt8]?]) = (bytes[Self.head.count...], [])
    for _ in 0..<4 {
      guard rest.count >= 8 else { return nil }
      let length = rest.prefix(8).reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
      rest = rest.dropFirst(8)
      if length == .max {
        fields.append(nil)
        continue
      }
      guard let count = Int(exactly: length), count <= rest.count else { return nil }
      fields.append(Array(rest.prefix(count)))
      rest = rest.dropFirst(count)
    }
    guard let path = fields[0], !path.isEmpty, rest.isEmpty else { return nil }
    self.path = path.split(separator: UInt8(ascii: "/")).map { Array($0) }
    base = TableBase(shown: fields[1], own: fields[2])
    result = fields[3]
  }
}

/// In the work folder, where no sweep removes them.
extension UpperLayer {
  private static let recordStart = Array("table-".utf8)

  /// - Parameter name: of the record; nil for a new one.
  /// - Returns: its name.
  public func write(_ record: TableRecord, as name: [UInt8]? = nil) throws(Errno) -> [UInt8] {
    let random = String(UInt64.random(in: 0...(.max)), radix: 16)
    let name = name ?? Self.recordStart + Array(random.utf8)
    try withTemporary { temporary throws(Errno) in
      try inWorkFolder { folder throws(Errno) in
        let file = try folder.createFile(temporary)
        try file.writeWhole(record.encoded)
        try withCName(name) { name throws(Errno) in try folder.rename(temporary, to: name, in: folder) }
      }
    }
    return name
  }

  public func removeTableRecord(_ name: [UInt8]) {
    try? inWorkFolder { folder throws(Errno) in
      try withCName(name) { name throws(Errno) in try folder.remove(name, isDirectory: false) }
    }
  }

  /// What former processes have left.
  public var tableRecords: [(name: [UInt8], record: TableRecord)] {
    let found = try? layer.root.withDescriptor { root throws(Errno) in
      var found: [(name: [UInt8], record: TableRecord)] = []
      guard let folder = try work.open(in: root) else { return found }
      for name in try folder.entryNames() where name.starts(with: Self.recordStart) {
        let file = try folder.open(name, [.read, .noFollow, .nonBlocking])
        let record = TableRecord(try file.readAll(limit: 4 * MergedTables.largest))
        if let record { found.append((name, record)) }
      }
      return found
    }
    return found ?? []
  }

  /// Makes a merged table, which this layer's has part in, an ordinary file of this layer.
  /// - Parameter willPublish: as for `copyUp`.
  /// - Throws: ESTALE if it is another table by now.
  public func replaceTable(
    _ name: CName, in parent: LayerDirectory, byCopyOf merged: FileIdentity,
    _ willPublish: ((FileIdentity) -> Void)?
  ) throws(Errno) -> FileStatus {
    let table = try parent.table(merged)
    guard case .file(let status) = try parent.find(name) else { throw .staleFileHandle }
    let original = try parent.openPath(name, identity: status.identity)
    return try replaceTable(name, in: parent, by: table.content, like: original, former: status) {
      identity throws(Errno) in willPublish?(identity)
    }
  }

  /// Puts a table in the place of a visible one.
  public func makeTable(
    _ name: CName, in directory: MergedDirectory, _ content: [UInt8]
  ) throws(Errno) -> FileStatus {
    if case .file(let status) = try directory.top.find(name) {
      let original = try directory.top.openPath(name, identity: status.identity)
      return try replaceTable(name, in: directory.top, by: content, like: original, former: status) { _ in }
    }
    guard case .file(let layer, let status) = try directory.lookup(name),
      let part = directory.part(of: layer, with: name, status.identity)
    else { throw .staleFileHandle }
    let original = try part.openFile(name, identity: status.identity)
    return try replaceTable(name, in: directory.top, by: content, like: original, former: nil) { _ in }
  }

  /// Puts a table at a name, whole.
  /// - Parameters:
  ///   - original: gives owner, mode, times and extended attributes.
  ///   - former: the file that is replaced; nil for none.
  ///   - willReplace: called right before; ESTALE keeps the former file.
  /// - Returns: the attributes of the new file.
  /// - Throws: ESTALE if the former file was changed meanwhile; EEXIST.
  public func replaceTable(
    _ name: CName, in parent: LayerDirectory, by content: [UInt8], like original: LayerFile,
    former: FileStatus?, willReplace: (FileIdentity) throws(Errno) -> Void
  ) throws(Errno) -> FileStatus {
    try withTemporary { temporary throws(Errno) in
      let attributes = try CopiedAttributes(original.attributes(), original)
      let identity = try inWorkFolder { folder throws(Errno) in
        let file = try folder.createFile(temporary)
        try file.writeWhole(content)
        try attributes.set(on: file)
        try file.synchronize(dataOnly: false)
        return try file.attributes().identity
      }
      try willReplace(identity)
      return try parent.withDescriptor { parent throws(Errno) in
        if let former {
          let present = try parent.attributes(of: name)
          let isSame = (present.identity, present.changed) == (former.identity, former.changed)
          if !isSame { throw .staleFileHandle }
        }
        try work.withFolder { folder throws(Errno) in
          try parent.keepingTimes { () throws(Errno) in
            guard former == nil else { return try folder.rename(temporary, to: name, in: parent) }
            try folder.renameNew(temporary, to: name, in: parent)
          }
        }
        return try parent.attributes(of: name)
      }
    }
  }
}

extension Descriptor {
  fileprivate func writeWhole(_ bytes: [UInt8]) throws(Errno) {
    do throws(Errno) { try writeInOneCall(bytes) } catch {
      // Only a part had space.
      throw error == .invalidArgument ? .noSpace : error
    }
  }
}
