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
  mutating func removeCollisions(_ files: [PlannedFile]) {
    var known: Set<ByteString> = []
    for name in entries.keys.sorted() {
      switch entries[name] {
      case .directory(var directory)?:
        directory.removeCollisions(files)
        entries[name] = .directory(directory)
      case .file(let index)? where files[index].form.isOverlayWhiteout: continue
      default: ()
      }
      if !known.insert(FoldedNames.key(of: name)).inserted { entries[name] = nil }
    }
  }
}
