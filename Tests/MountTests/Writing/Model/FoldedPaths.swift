import Posix
import TestSupport

/// The paths of a tree in a mount where case does not count.
struct FoldedPaths {
  let root: ByteString

  /// The entry that a path finds without case; what does not exist stays as it is. Whiteouts are no entries.
  func resolved(_ path: ByteString) -> ByteString {
    var found: ByteString = ""
    for name in path.components {
      let names = (try? (root / found).names()) ?? []
      let key = FoldedNames.key(of: name)
      let present = names.first { FoldedNames.key(of: $0) == key && !(root / found / $0).isWhiteout }
      found = found / (present ?? name)
    }
    return found
  }

  /// How many directories a path finds without case.
  func directoryCount(_ path: ByteString) -> Int {
    var found = [root]
    for name in path.components {
      let key = FoldedNames.key(of: name)
      found = found.flatMap { directory in
        ((try? directory.names()) ?? []).filter { FoldedNames.key(of: $0) == key }.map { directory / $0 }
          .filter { (try? $0.status().kind) == .directory }
      }
    }
    return found.count
  }

  /// An operation on the entries that its paths find without case. Only a rename to another spelling of the entry itself has
  /// a spelling of its own.
  func resolved(_ operation: WriteOperation) -> WriteOperation {
    if case .rename(let source, let target, let flags) = operation, flags != 2 {
      let (from, to) = (resolved(source), resolved(target))
      // The kernel takes one path for one entry, however that is spelled.
      if from == to, from.count > 0, target.lastComponent != source.lastComponent {
        return .rename(from, to: from.parent / target.lastComponent, flags: flags)
      }
    }
    return operation.mapPaths { resolved($0) }
  }

  /// Another spelling of each name now and then.
  static func respelled(_ path: ByteString, using random: inout SplitMix64) -> ByteString {
    var respelled: ByteString = ""
    for name in path.components {
      let key = FoldedNames.key(of: name)
      let spellings = FoldedNames.spellings.first { $0.contains { FoldedNames.key(of: $0) == key } } ?? [name]
      respelled = respelled / (random.percent(50) ? name : random.pick(spellings))
    }
    return respelled
  }
}

extension ByteString {
  /// The names from the beginning of a relative path on.
  var components: [ByteString] { bytes.split(separator: UInt8(ascii: "/")).map { ByteString([UInt8]($0)) } }
}

extension PlannedDirectory {
  /// Takes all entries away that have another one's name without case, but not whiteouts.
  /// - Parameter keepsTwins: whether directories of one name stay.
  mutating func removeCollisions(_ files: [PlannedFile], keepsTwins: Bool) {
    var twins = [self]
    Self.removeCollisions(in: &twins, files, keepsTwins)
    self = twins[0]
  }

  /// - Parameter twins: directories that are one name.
  private static func removeCollisions(
    in twins: inout [PlannedDirectory], _ files: [PlannedFile], _ keepsTwins: Bool
  ) {
    var directories: [ByteString: [(twin: Int, name: ByteString)]] = [:]
    var known: Set<ByteString> = []
    for twin in twins.indices {
      for name in twins[twin].entries.keys.sorted() {
        let key = FoldedNames.key(of: name)
        switch twins[twin].entries[name] {
        case .file(let index)? where files[index].form.isOverlayWhiteout: continue
        case .directory? where keepsTwins && directories[key] != nil: directories[key]?.append((twin, name))
        case .directory? where known.insert(key).inserted: directories[key] = [(twin, name)]
        case .file? where known.insert(key).inserted: continue
        default: twins[twin].entries[name] = nil
        }
      }
    }
    for places in directories.values {
      var inner = places.compactMap { place -> PlannedDirectory? in
        guard case .directory(let directory)? = twins[place.twin].entries[place.name] else { return nil }
        return directory
      }
      removeCollisions(in: &inner, files, keepsTwins)
      for (place, directory) in zip(places, inner) {
        twins[place.twin].entries[place.name] = .directory(directory)
      }
    }
  }
}
