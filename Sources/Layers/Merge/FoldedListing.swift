import Posix

/// The union of the layers' names where case does not count: each name once, in the spelling of the lowest layer whose
/// entry no whiteout hides.
struct FoldedListing {
  private struct Name {
    /// The spelling of the lowest layer so far.
    var spelling: [UInt8]
    /// The topmost layer's entries of the name.
    let entries: [DirectoryRecord]
    let layer: Int
  }

  private(set) var whiteouts: [Listing.Whiteout] = []
  private var names: [[UInt8]: Name] = [:]
  /// The names in the order in which they were met.
  private var order: [[UInt8]] = []
  private var hidden: Set<[UInt8]> = []

  /// Adds the entries of the next layer below.
  mutating func add(_ content: FoldedContent, layer: Int) {
    for key in content.order where !hidden.contains(key) {
      guard let entries = content.records[key] else { continue }
      if names[key] != nil {
        names[key]?.spelling = entries[0].name
      } else {
        names[key] = Name(spelling: entries[0].name, entries: entries, layer: layer)
        order.append(key)
      }
    }
    whiteouts += content.whiteouts.map { Listing.Whiteout(name: $0, layer: layer) }
    hidden.formUnion(content.names.hidden)
  }

  /// The listing; an entry is what a lookup of its spelling finds.
  var listing: Listing {
    var listing = Listing()
    for key in order {
      guard let name = names[key] else { continue }
      let entry = name.entries.first { $0.name == name.spelling } ?? name.entries[0]
      listing.add(
        name.spelling, kind: entry.kind, layer: name.layer, device: entry.device, inode: entry.inode)
    }
    listing.whiteouts = whiteouts
    return listing
  }
}

/// An entry of a directory.
struct DirectoryRecord {
  let name: [UInt8]
  let kind: FileKind
  let device: UInt64
  let inode: UInt64
}

/// What one layer's directory contains.
struct FoldedContent {
  var names = FoldedNames()
  /// The entries by name, those of each sorted by bytes.
  var records: [[UInt8]: [DirectoryRecord]] = [:]
  var order: [[UInt8]] = []
  /// The names of character devices.
  var whiteouts: [[UInt8]] = []
  /// How many names, those of directories aside, several twins have, and none of them in several spellings.
  private(set) var sharedNames = 0

  mutating func add(_ name: [UInt8], key: [UInt8], _ listed: LayerDirectory.Listed) {
    if listed.isWhiteout { return whiteouts.append(name) }
    let record = DirectoryRecord(name: name, kind: listed.kind, device: listed.device, inode: listed.inode)
    add(record, key: key)
  }

  /// Adds what a twin contains.
  mutating func add(_ twin: FoldedContent) {
    for key in twin.names.hidden { names.hide(key) }
    whiteouts += twin.whiteouts
    for key in twin.order {
      for record in twin.records[key] ?? [] { add(record, key: key) }
      if records[key]?.count == 2, records[key]?[0].kind != .directory, twin.names.collisions[key] == nil {
        sharedNames += 1
      }
    }
  }

  /// Entries of one spelling, which twins can have, keep their order.
  private mutating func add(_ record: DirectoryRecord, key: [UInt8]) {
    guard var entries = records.updateValue([record], forKey: key) else { return order.append(key) }
    let place = entries.firstIndex { record.name.lexicographicallyPrecedes($0.name) }
    entries.insert(record, at: place ?? entries.endIndex)
    records[key] = entries
  }
}

extension MergedDirectory {
  /// As `list`, where case does not count.
  func listFolded(_ count: () throws(Errno) -> Void) throws(Errno) -> Listing {
    var merged = FoldedListing()
    for (index, part) in parts.enumerated() where !part.gate.isSkipped && isFirst(index) {
      var content = try part.foldedContent(count)
      let twins = parts[(index + 1)..<end(ofLayerAt: index)]
      for twin in twins { content.add(try twin.foldedContent(count)) }
      part.gate.collisions.record(content.sharedNames, amongTwinsOf: part.identity)
      merged.add(content, layer: part.layer)
    }
    if let missing { throw missing.error }
    return merged.listing
  }

  /// The spelling in which a listing shows a name; nil if the name is not visible.
  /// - Throws: what reading a part throws.
  public func shownSpelling(of name: [UInt8]) throws(Errno) -> [UInt8]? {
    let key = NameFolding.key(of: name)
    var shown: [UInt8]?
    for (index, part) in parts.enumerated() where !part.gate.isSkipped && isFirst(index) {
      guard part.foldsNames else { return name }
      let twins = index..<end(ofLayerAt: index)
      if let first = try firstSpelling(ofKey: key, in: twins) { shown = first }
      for twin in parts[twins] {
        if let spellings = twin.spellings, try twin.foldedNames(spellings).hidden.contains(key) {
          return shown
        }
      }
    }
    return shown
  }

  private func firstSpelling(ofKey key: [UInt8], in range: Range<Int>) throws(Errno) -> [UInt8]? {
    var found: [UInt8]?
    for part in parts[range] {
      guard let spellings = part.spellings, let own = try part.foldedNames(spellings).first[key] else {
        continue
      }
      if found.map({ own.lexicographicallyPrecedes($0) }) ?? true { found = own }
    }
    return found
  }
}

extension LayerDirectory {
  fileprivate func foldedContent(_ count: () throws(Errno) -> Void) throws(Errno) -> FoldedContent {
    let state = try spellings.map { spellings throws(Errno) in try spellingState(spellings) }
    var content = FoldedContent()
    content.names = try readNames(recordsInodes: recordsInodes) { name, key, listed throws(Errno) in
      try count()
      content.add(name, key: key, listed)
    }
    if let spellings, let state { keep(content.names, readIn: state, spellings) }
    return content
  }
}
