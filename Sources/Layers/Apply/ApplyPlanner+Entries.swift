import CLibrary
import Posix
import StringTables

/// What becomes of an entry of each kind.
extension ApplyPlanner {
  mutating func addWhiteout(_ name: [UInt8], _ bytes: CName, in frame: Frame) throws(Errno) {
    if let layer = try coverer(of: bytes, in: frame) {
      append(name, in: frame, .nothing, .keep, .regular, .uncovered(layer: layer))
      return
    }
    let shows = try frame.below?.lookup(bytes) != nil
    let found = try find(frame.listing.targetName(name), in: frame.target)
    let kind = found.kind
    guard kind != nil || (shows && !found.isHidden) else {
      append(name, in: frame, .whiteout, .drop, .regular)
      return
    }
    let index = append(name, in: frame, .whiteout, .remove, kind ?? .regular)
    let count = frame.target.map { self.count(frame.listing.targetName(name), in: $0) } ?? 0
    update(index) {
      $0.leavesWhiteout = shows
      $0.count = count
    }
  }

  mutating func addFile(
    _ name: [UInt8], _ bytes: CName, _ status: FileStatus, in frame: Frame
  ) throws(Errno) {
    let kind = status.kind ?? .regular
    if let layer = try coverer(of: bytes, in: frame) {
      append(name, in: frame, .nothing, .keep, kind, .covered(layer: layer))
      return
    }
    let found = try find(frame.listing.targetName(name), in: frame.target)
    if mergesTables, status.isRegular,
      let obstacle = try obstacle(toTable: name, status, isPresent: found.kind == .regular, in: frame)
    {
      append(name, in: frame, .nothing, .keep, kind, obstacle)
      return
    }
    let index = append(name, in: frame, .file(status), found.kind == nil ? .add : .replace, kind)
    if found.kind == .directory, let target = frame.target {
      let count = count(frame.listing.targetName(name), in: target)
      update(index) { $0.count = count }
    }
  }

  /// Why merged tables would have other strings with a table or a catalog in the target.
  private func obstacle(
    toTable name: [UInt8], _ status: FileStatus, isPresent: Bool, in frame: Frame
  ) throws(Errno) -> ApplyPlan.Obstacle? {
    let foldsNames = frame.source.foldsNames
    if TableName.isCatalog(name, foldsNames: foldsNames) { return .catalog }
    guard TableName.isTable(name, foldsNames: foldsNames) else { return nil }
    if isPresent, !frame.isInOpaque, try !isComplete(name, status, in: frame) { return .partialTable }
    // Those of higher layers would come before it.
    for folder in frame.catalogFolders {
      let found = try withCName(TableName.catalog(ofTable: name)) { name throws(Errno) in
        try folder.find(name)
      }
      if case .file = found { return .catalog }
    }
    return nil
  }

  /// Whether a table hides those of the layers below.
  private func isComplete(_ name: [UInt8], _ status: FileStatus, in frame: Frame) throws(Errno) -> Bool {
    let file = try withCName(name) { name throws(Errno) in
      try frame.source.openFile(name, identity: status.identity)
    }
    return StringTable.isComplete(try file.readAll(limit: 4096))
  }

  /// - Returns: nil if what is in the directory is kept.
  mutating func addDirectory(
    _ name: [UInt8], _ bytes: CName, _ source: LayerDirectory, in frame: Frame
  ) throws(Errno) -> Frame? {
    var isOpaque = frame.listing.isMarked(name)
    if !isOpaque { isOpaque = try source.isOpaque() }
    var obstacle: ApplyPlan.Obstacle?
    if source.identity.device != frame.source.identity.device { obstacle = .otherFileSystem }
    let between = try partsBetween(bytes, in: frame, isOpaque: isOpaque, &obstacle)
    let found = try find(frame.listing.targetName(name), in: frame.target)
    if let directory = found.directory, directory.identity.device != frame.target?.identity.device {
      obstacle = .otherFileSystem
    }
    // One directory at both places, by a bind mount: what is removed from one would be gone from the other.
    if found.directory?.identity == source.identity { obstacle = .otherFileSystem }
    if let obstacle {
      append(name, in: frame, .nothing, .keep, .directory, obstacle)
      return nil
    }
    return try addDirectory(name, bytes, source, isOpaque: isOpaque, between, found, in: frame)
  }

  private mutating func addDirectory(
    _ name: [UInt8], _ bytes: CName, _ source: LayerDirectory, isOpaque: Bool, _ between: [LayerDirectory],
    _ found: TargetEntry, in frame: Frame
  ) throws(Errno) -> Frame? {
    let listing = try ApplyListing(source, found.directory)
    let below = try directoryBelow(bytes, in: frame)
    var isHiddenBelow = isOpaque || found.hidesBelow
    if !isHiddenBelow, let directory = found.directory { isHiddenBelow = try directory.isOpaque() }
    let action = try action(source, found)
    let index = append(name, in: frame, .directory, action, .directory)
    let kept = try attributesObstacle(source, between)
    update(index) {
      $0.isWhole = true
      $0.isOpaque = isOpaque
      $0.becomesOpaque = isHiddenBelow && below != nil
      $0.obstacle = kept
    }
    return Frame(
      step: index, source: source, target: found.directory, between: between,
      below: isHiddenBelow ? nil : below, isInOpaque: frame.isInOpaque || isOpaque,
      place: frame.place?.entering(bytes), listing: listing,
      catalogFolders: TableName.isLanguageFolder(name, foldsNames: source.foldsNames)
        ? [frame.source] + frame.between : [])
  }

  private func action(_ source: LayerDirectory, _ found: TargetEntry) throws(Errno) -> ApplyPlan.Action {
    guard let directory = found.directory else { return found.kind == nil ? .add : .replace }
    return try CopiedAttributes(of: source).isSame(as: CopiedAttributes(of: directory)) ? .merge : .change
  }

  /// The layers between would show their own attributes of a directory.
  private func attributesObstacle(
    _ source: LayerDirectory, _ between: [LayerDirectory]
  ) throws(Errno) -> ApplyPlan.Obstacle? {
    guard let first = between.first else { return nil }
    let isSame = try CopiedAttributes(of: source).isSame(as: CopiedAttributes(of: first))
    return isSame ? nil : .attributes(layer: first.layer)
  }

  // MARK: - Other layers

  /// The first layer between that has a name, or hides it.
  private func coverer(of name: CName, in frame: Frame) throws(Errno) -> Int? {
    for part in frame.between {
      guard case .nothing = try part.find(name) else { return part.layer }
      if try part.hasWhiteoutMarker(name, length: strlen(name)) { return part.layer }
    }
    return nil
  }

  /// The directories of a name in the layers between.
  /// - Parameter obstacle: is set if one of them hides the target's, or is hidden by the top layer's.
  private func partsBetween(
    _ name: CName, in frame: Frame, isOpaque: Bool, _ obstacle: inout ApplyPlan.Obstacle?
  ) throws(Errno) -> [LayerDirectory] {
    var parts: [LayerDirectory] = []
    for part in frame.between {
      var covers = try part.hasWhiteoutMarker(name, length: strlen(name))
      switch try part.find(name) {
      case .nothing: break
      case .whiteout, .file: covers = true
      case .directory:
        if isOpaque { obstacle = obstacle ?? .uncovered(layer: part.layer) }
        for inner in try part.directories(named: name) {
          if try inner.isOpaque() { covers = true }
          parts.append(inner)
        }
      }
      if covers { obstacle = obstacle ?? .covered(layer: part.layer) }
    }
    return parts
  }

  /// The directory of a name in the layers below the target.
  private func directoryBelow(_ name: CName, in frame: Frame) throws(Errno) -> MergedDirectory? {
    guard case .directory(let directory, _) = try frame.below?.lookup(name) else { return nil }
    return directory
  }

  /// What the target has under a name.
  struct TargetEntry {
    /// nil for nothing and for whiteouts.
    var kind: FileKind?
    var directory: LayerDirectory?
    /// Whether a whiteout hides the name in the layers below.
    var isHidden = false

    /// Whether it hides the directories of the layers below.
    var hidesBelow: Bool { isHidden || (kind != nil && kind != .directory) }
  }

  private func find(_ name: [UInt8], in target: LayerDirectory?) throws(Errno) -> TargetEntry {
    guard let target else { return TargetEntry() }
    return try withCName(name) { name throws(Errno) in
      let isMarked = try target.hasWhiteoutMarker(name, length: strlen(name))
      switch try target.findExact(name, isLikelyDirectory: false) {
      case .nothing: return TargetEntry(isHidden: isMarked)
      case .whiteout: return TargetEntry(isHidden: true)
      case .file(let status): return TargetEntry(kind: status.kind ?? .regular, isHidden: isMarked)
      case .directory(let found, _):
        return TargetEntry(kind: .directory, directory: found, isHidden: isMarked)
      }
    }
  }
}
