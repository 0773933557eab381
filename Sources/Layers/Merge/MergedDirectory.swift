import CLibrary
import Posix
import Synchronization

/// A visible entry.
public enum Entry: Sendable {
  /// A non-directory, from one layer.
  case file(layer: Int, FileStatus)
  /// A directory and its merged attributes.
  case directory(MergedDirectory, FileStatus)

  /// The attributes, whatever it is.
  public var attributes: FileStatus {
    switch self {
    case .file(_, let attributes), .directory(_, let attributes): attributes
    }
  }
}

/// Why a layer could not be asked.
public struct LayerFailure: Sendable {
  /// The layer's index.
  public let layer: Int
  public let error: Errno
}

/// A directory of the merged view: the directories of the layers that are merged in it.
///
/// `.`, `..` and names with a slash are never found and reach no file system.
public final class MergedDirectory: Sendable {
  /// The merged directories, top layer first; never empty. Where case does not count, a layer can have several in a row: its
  /// directories that are one name.
  public let parts: [LayerDirectory]
  /// The failure of a layer below these parts, which may have the directory, too.
  public let missing: LayerFailure?
  /// Whether a layer has several parts.
  let hasTwins: Bool
  /// Where catalogs of strings contribute to the tables in it; nil for most directories.
  let languageFolder: LanguageFolder?
  /// A number that no other directory has with as many parts as an index needs; 0 with fewer parts.
  public let serialNumber: UInt64

  private static let lastSerialNumber = Atomic<UInt64>(0)

  init(parts: [LayerDirectory], missing: LayerFailure? = nil, languageFolder: LanguageFolder? = nil) {
    self.parts = parts
    self.missing = missing
    self.languageFolder = languageFolder
    hasTwins = parts[0].foldsNames && zip(parts, parts.dropFirst()).contains { $0.layer == $1.layer }
    serialNumber =
      parts.count < Self.fewestIndexedParts
      ? 0 : Self.lastSerialNumber.wrappingAdd(1, ordering: .relaxed).newValue
  }

  /// The layers of a merged root with their present root directories.
  public convenience init(replacingRootsOf root: MergedDirectory, in stack: LayerStack) {
    self.init(parts: root.parts.map { stack.layers[$0.layer].root })
  }

  /// The topmost directory.
  public var top: LayerDirectory { parts[0] }

  /// The topmost directory that a layer really has, which supplies owner, mode and extended attributes: `top` unless that is
  /// only above a laid layer, which must not give or take rights.
  public var attributeSource: LayerDirectory {
    top.isAboveLayer ? parts.first { !$0.isAboveLayer } ?? top : top
  }

  /// Whether there is only one part.
  public var isAlone: Bool { parts.count == 1 && missing == nil }

  /// Whether case does not count in names.
  public var foldsNames: Bool { top.foldsNames }

  /// Looks a name up; nil if it is not visible. A directory is found without the layers from the first on that fails
  /// below its topmost part.
  /// - Parameters:
  ///   - layer: the first layer to search; those above do not affect the name.
  ///   - isLikelyDirectory: saves a system call if the entry is a directory.
  ///   - toleratesDeferral: whether a layer that must not be waited for counts as one that fails.
  ///   - places: the parts that may have something of the name; nil for all.
  public func lookup(
    _ name: CName, from layer: Int = 0, isLikelyDirectory: Bool = false, toleratesDeferral: Bool = false,
    among places: [NameIndex.Place]? = nil
  ) throws(Errno) -> Entry? {
    guard Self.isEntryName(name), !WhiteoutMarker.isMarker(name) else { return nil }
    let length = strlen(name)
    var collected: [LayerDirectory] = []
    var (merged, first, missing) = (FileStatus?.none, FileStatus?.none, missing)
    search: for step in 0..<(places?.count ?? parts.count) {
      let index = places?[step].part ?? step
      let part = parts[index]
      if part.layer < layer || part.gate.isSkipped || !isFirst(index) { continue }
      let twins = index..<end(ofLayerAt: index)
      let isLast =
        missing == nil && (places.map { step == $0.count - 1 } ?? (twins.upperBound == parts.count))
      do throws(Errno) {
        let (found, others) = try find(name, in: twins, isLikelyDirectory: isLikelyDirectory)
        switch found {
        case .nothing: break
        case .whiteout:
          missing = nil
          break search
        case .file(let attributes):
          if collected.isEmpty {
            let table = try table(name, length: length, attributes, at: index)
            return .file(layer: part.layer, table?.status ?? attributes)
          }
          missing = nil
          break search
        case .directory(let directory, let attributes):
          collected.append(directory)
          first = first ?? attributes
          merged = Self.merge(merged, below: attributes)
          for (twin, attributes) in others {
            collected.append(twin)
            merged = Self.merge(merged, below: attributes)
          }
          if !isLast, try Self.hidesBelow(collected.suffix(1 + others.count)) {
            missing = nil
            break search
          }
        }
        if !isLast, places?[step].mayHaveMarker ?? true,
          try hasWhiteoutMarker(name, length: length, in: twins)
        {
          missing = nil
          break search
        }
      } catch {
        let isTolerated = error.isFileSystemFailure || (toleratesDeferral && error == .deferred)
        guard isTolerated, !collected.isEmpty else { throw error }
        missing = LayerFailure(layer: part.layer, error: error)
        break
      }
    }
    if let merged, let first {
      let attributes = try Self.settingTime(of: merged, from: first, collected[0])
      let folder = LanguageFolder(name, length: length, in: self)
      return .directory(
        MergedDirectory(parts: collected, missing: missing, languageFolder: folder), attributes)
    }
    // The layer might have the name.
    if let missing { throw missing.error }
    return nil
  }

  /// Whether one of a layer's directories of a name is opaque.
  private static func hidesBelow(_ twins: ArraySlice<LayerDirectory>) throws(Errno) -> Bool {
    for directory in twins where try directory.isOpaque() { return true }
    return false
  }

  /// Looks a name up without some layers.
  /// - Throws: as `lookup`.
  public func lookup(_ name: CName, without layers: Set<Int>) throws(Errno) -> Entry? {
    let rest = parts.filter { !layers.contains($0.layer) }
    return rest.isEmpty ? nil : try MergedDirectory(parts: rest).lookup(name)
  }

  /// The present merged attributes; on a thread that must not wait, those of the parts that answer.
  public func attributes() throws(Errno) -> FileStatus {
    if parts.contains(where: { $0.gate.isBypassed }) { return try attributesOfAnswering() }
    let first = try top.attributes()
    var merged = first
    merged.links = 1
    for part in parts.dropFirst() {
      do throws(Errno) { merged = Self.merge(merged, below: try part.attributes()) } catch {
        // What a failed layer would add, a later time, is not worth the failure of the directory.
        if !error.isFileSystemFailure { throw error }
      }
    }
    return try Self.settingTime(of: merged, from: first, top)
  }

  /// - Throws: `deferred` if no part answers.
  private func attributesOfAnswering() throws(Errno) -> FileStatus {
    var merged: FileStatus?
    var first: FileStatus?
    for part in parts where !part.gate.isBypassed {
      let attributes = try part.attributes()
      if part === top { first = attributes }
      merged = Self.merge(merged, below: attributes)
    }
    if let merged, let first { return try Self.settingTime(of: merged, from: first, top) }
    if let merged { return merged }
    // Asking the top part puts the request off.
    return try top.attributes()
  }

  /// Gives merged attributes the topmost directory's mtime if that was set through a mount.
  private static func settingTime(
    of merged: FileStatus, from first: FileStatus, _ top: LayerDirectory
  ) throws(Errno) -> FileStatus {
    guard merged.modified > first.modified, try top.supersedes(merged.modified) else { return merged }
    var attributes = merged
    attributes.modified = first.modified
    return attributes
  }

  /// Attributes are those of the `attributeSource`, mtime and ctime the latest of all, the link count 1. See also
  /// `settingTime`.
  private static func merge(_ upper: FileStatus?, below: FileStatus) -> FileStatus {
    let upper = upper ?? below
    let isAbove = FoldersAbove.isIdentity(upper.identity) && !FoldersAbove.isIdentity(below.identity)
    var merged = isAbove ? below : upper
    merged.links = 1
    merged.modified = max(upper.modified, below.modified)
    merged.changed = max(upper.changed, below.changed)
    return merged
  }

  private static func isEntryName(_ name: CName) -> Bool {
    let dot = CChar(46)
    if name[0] == 0 || (name[0] == dot && (name[1] == 0 || (name[1] == dot && name[2] == 0))) { return false }
    return strchr(name, 47) == nil
  }
}
