import Containers
import Posix

/// The tables that programs save through the mount at present, and what they have saved last.
///
/// From the first change until it is reduced to what differs from the layers below, a table is an ordinary, whole file of the
/// upper layer, which is not merged.
struct TablesInSaving {
  struct Key: Hashable {
    let directory: FileIdentity
    /// What its spellings have in common, where case does not count.
    let name: [UInt8]
  }

  /// With the upper layer's table that is still to be merged, as it is yet to be changed; nil for none.
  var tables: [Key: FileIdentity?] = [:]
  /// What programs have written, by the hash of what the layers have since then.
  var written = LRUCache<UInt64, [UInt8]>(countLimit: 1024, costLimit: 16 << 20)
}

/// What a program saves over: needed to tell what it has changed.
public struct TableBase: Sendable, Equatable {
  /// What the mount shows; nil if that has no part of the layers below.
  public var shown: [UInt8]?
  /// The upper layer's table in that.
  public var own: [UInt8]?
  /// Its identity.
  public var merged: FileIdentity?
}

extension MergedDirectory {
  private func savingKey(_ name: [UInt8]) -> TablesInSaving.Key {
    TablesInSaving.Key(directory: top.identity, name: foldsNames ? NameFolding.key(of: name) : name)
  }

  /// Whether the upper layer's file is not to be merged, since a program saves it.
  func isBeingSaved(_ name: [UInt8], _ status: FileStatus) -> Bool {
    guard let tables = top.gate.tables else { return false }
    return tables.saving { saving in
      if saving.tables.isEmpty { return false }
      guard let merged = saving.tables[savingKey(name)] else { return false }
      return merged != status.identity
    }
  }

  /// Whether a program saves the table already.
  public func isBeingSaved(_ name: CName) -> Bool {
    let key = savingKey([UInt8](bytesOf: name))
    return top.gate.tables?.saving { $0.tables[key] != nil } ?? false
  }

  /// Records that a program is about to save a table.
  public func beginSaving(_ name: [UInt8], _ base: TableBase) {
    let key = savingKey(name)
    top.gate.tables?.saving { $0.tables[key] = .some(base.merged) }
  }

  /// Records that a table is as it shall be.
  public func endSaving(_ name: [UInt8]) {
    let key = savingKey(name)
    top.gate.tables?.saving { _ = $0.tables.removeValue(forKey: key) }
  }
}
