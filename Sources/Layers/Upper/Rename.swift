import Posix
import Synchronization

/// An entry of the upper layer that gets another name.
private struct RenamedEntry {
  let name: CName
  let parent: MergedDirectory
  /// Nil for a non-directory.
  let directory: LayerDirectory?

  /// - Throws: EXDEV for a directory that layers below take part in; ESTALE for a file of a layer below.
  init(_ name: CName, _ parent: MergedDirectory, _ entry: Entry) throws(Errno) {
    (self.name, self.parent) = (name, parent)
    switch entry {
    case .file(let layer, _):
      guard layer == parent.top.layer else { throw .staleFileHandle }
      directory = nil
    case .directory(let merged, _):
      let isOwn = merged.parts.count == 1 && merged.missing == nil && merged.top.layer == parent.top.layer
      guard isOwn else { throw .crossDeviceLink }
      directory = merged.top
    }
  }
}

extension UpperLayer {
  /// Renames an entry that is in this layer; where a layer below has the old name, a whiteout takes its place.
  /// - Throws: EXDEV for a directory that layers below take part in; ESTALE for a file that is not in this layer; ENOENT,
  ///   EEXIST, ENOTEMPTY, EISDIR, ENOTDIR, EINVAL as rename(2).
  /// - Parameter found: what the names were found to be just now.
  public func rename(
    _ name: CName, in directory: MergedDirectory, to newName: CName, in newDirectory: MergedDirectory,
    _ flags: RenameFlags, found: (source: Entry, target: Entry?)? = nil
  ) throws(Errno) {
    let isKnown = flags.isEmpty || flags == .noReplace || flags == .exchange
    guard isKnown, !WhiteoutMarker.isMarker(newName) else { throw .invalidArgument }
    if newDirectory.top.conceals(newName) { throw .notPermitted }
    if !flags.isEmpty {
      return try renameOnce(name, in: directory, to: newName, in: newDirectory, flags, found)
    }
    // EEXIST: the upper layer got the new name meanwhile.
    var found = found
    try repeatingRaces { () throws(Errno) in
      defer { found = nil }
      try renameOnce(name, in: directory, to: newName, in: newDirectory, flags, found)
    }
  }

  /// - Throws: EXDEV for a directory in which the view would hide other names then: they would have to vanish or appear.
  private func refuseOtherPlace(
    _ name: CName, in directory: MergedDirectory, _ entry: Entry, _ newName: CName,
    in newDirectory: MergedDirectory
  ) throws(Errno) {
    guard case .directory = entry, let own = directory.top.place, let other = newDirectory.top.place else {
      return
    }
    if !own.entering(name).isSame(as: other.entering(newName)) { throw .crossDeviceLink }
  }

  /// Checks what does not depend on the layers that have the entries.
  /// - Throws: as `rename`, but for EXDEV of a directory that layers below take part in.
  public func checkRename(
    _ name: CName, in directory: MergedDirectory, _ source: Entry, to newName: CName,
    in newDirectory: MergedDirectory, _ target: Entry?, _ flags: RenameFlags
  ) throws(Errno) {
    try checkKinds(name, in: directory, source, to: newName, in: newDirectory, target, flags)
    if flags != .exchange, !source.isSame(as: target) { try refuseFull(target) }
  }

  private func checkKinds(
    _ name: CName, in directory: MergedDirectory, _ source: Entry, to newName: CName,
    in newDirectory: MergedDirectory, _ target: Entry?, _ flags: RenameFlags
  ) throws(Errno) {
    try refuseOtherPlace(name, in: directory, source, newName, in: newDirectory)
    if flags == .exchange, let target {
      try refuseOtherPlace(newName, in: newDirectory, target, name, in: directory)
    }
    if flags == .noReplace, target != nil { throw .fileExists }
    if flags == .exchange, target == nil { throw .noSuchFileOrDirectory }
    if flags == .exchange || source.isSame(as: target) { return }
    try refuseOtherKind(target, than: source)
  }

  private func refuseFull(_ target: Entry?) throws(Errno) {
    guard case .directory(let replaced, _)? = target else { return }
    if try !replaced.list().items.isEmpty { throw .directoryNotEmpty }
  }

  private func renameOnce(
    _ name: CName, in directory: MergedDirectory, to newName: CName, in newDirectory: MergedDirectory,
    _ flags: RenameFlags, _ found: (source: Entry, target: Entry?)?
  ) throws(Errno) {
    let (source, target) =
      if let found { (Entry?.some(found.source), found.target) } else {
        (try directory.lookup(name), try newDirectory.lookup(newName))
      }
    guard let source else { throw .noSuchFileOrDirectory }
    try checkKinds(name, in: directory, source, to: newName, in: newDirectory, target, flags)
    if source.isSame(as: target) { return }
    if flags == .exchange, let target {
      let other = try RenamedEntry(newName, newDirectory, target)
      return try exchange(try RenamedEntry(name, directory, source), other)
    }
    if let target, target.layer != newDirectory.top.layer { try newDirectory.checkFlags(target.attributes) }
    let renamed = try RenamedEntry(name, directory, source)
    // As on overlayfs, after what a rename of this directory is refused for.
    try refuseFull(target)
    if case .directory(let replaced, _)? = target {
      try absorbTwins(of: replaced, newName, in: newDirectory)
    }
    try move(renamed, to: newName, in: newDirectory, replacing: target)
  }

  private func refuseOtherKind(_ target: Entry?, than source: Entry) throws(Errno) {
    switch (source, target) {
    case (.file, .directory): throw .isDirectory
    case (.directory, .file): throw .notDirectory
    default: break
    }
  }

  private func exchange(_ one: RenamedEntry, _ other: RenamedEntry) throws(Errno) {
    try makeOpaque(one, at: other.name, in: other.parent)
    try makeOpaque(other, at: one.name, in: one.parent)
    try one.parent.top.withDescriptor { parent throws(Errno) in
      try other.parent.top.withDescriptor { otherParent throws(Errno) in
        try parent.rename(one.name, to: other.name, in: otherParent, .exchange)
        whiteouts.removeMarker(beside: one.name, of: one.parent, in: parent)
        whiteouts.removeMarker(beside: other.name, of: other.parent, in: otherParent)
      }
    }
  }

  /// Makes a directory opaque if layers below have the name that it is about to get.
  private func makeOpaque(
    _ renamed: RenamedEntry, at name: CName, in parent: MergedDirectory
  ) throws(Errno) {
    guard let directory = renamed.directory, try parent.isBelow(name) else { return }
    try directory.withDescriptor { directory throws(Errno) in _ = try whiteouts.makeOpaque(directory) }
  }

  /// Hides what the layers below have of a directory, all entries of which this layer has.
  public func coverBelow(_ directory: LayerDirectory) throws(Errno) {
    try directory.withDescriptor { directory throws(Errno) in
      try directory.keepingTimes { () throws(Errno) in _ = try whiteouts.makeOpaque(directory) }
    }
  }

  private func move(
    _ renamed: RenamedEntry, to newName: CName, in newParent: MergedDirectory, replacing target: Entry?
  ) throws(Errno) {
    try makeOpaque(renamed, at: newName, in: newParent)
    let move = Move(
      name: renamed.name, newName: newName, isDirectory: renamed.directory != nil,
      leavesWhiteout: try renamed.parent.needsWhiteout(renamed.name),
      replacesOwn: target.map { $0.layer == newParent.top.layer } ?? false)
    try renamed.parent.top.withDescriptor { parent throws(Errno) in
      try newParent.top.withDescriptor { newFolder throws(Errno) in
        try hiding(move, from: parent) { (leavesDevice) throws(Errno) in
          try run(move, from: parent, to: newFolder, leavesDevice: leavesDevice)
        }
        whiteouts.removeMarker(beside: newName, of: newParent, in: newFolder)
      }
    }
  }
}

/// A rename within the upper layer.
private struct Move {
  let name: CName
  let newName: CName
  let isDirectory: Bool
  /// Whether layers below show the old name.
  let leavesWhiteout: Bool
  /// Whether the upper layer has the entry that is replaced.
  let replacesOwn: Bool
}

extension UpperLayer {
  /// Makes a marker for the old name where one is needed: before the move, when the entry is still visible beside it.
  /// - Parameter body: is passed whether it must leave a device whiteout instead.
  private func hiding(
    _ move: Move, from parent: borrowing Descriptor, _ body: (Bool) throws(Errno) -> Void
  ) throws(Errno) {
    guard move.leavesWhiteout, whiteouts.areMarkers else { return try body(move.leavesWhiteout) }
    try marking(move.name, in: parent) { () throws(Errno) in try body(false) }
  }

  private func run(
    _ move: Move, from parent: borrowing Descriptor, to newParent: borrowing Descriptor, leavesDevice: Bool
  ) throws(Errno) {
    if move.isDirectory, move.replacesOwn, try !clearTarget(move.newName, in: newParent) {
      return try swapWithTarget(move, from: parent, to: newParent, leavesDevice: leavesDevice)
    }
    do throws(Errno) {
      if leavesDevice {
        try moveLeavingDevice(move, from: parent, to: newParent)
      } else if move.replacesOwn {
        try parent.rename(move.name, to: move.newName, in: newParent)
      } else {
        try parent.renameNew(move.name, to: move.newName, in: newParent)
      }
    } catch {
      guard error == .fileExists, try newParent.hasDeviceWhiteout(move.newName) else { throw error }
      try moveOntoWhiteout(move, from: parent, to: newParent, leavesDevice: leavesDevice)
    }
  }

  private func moveLeavingDevice(
    _ move: Move, from parent: borrowing Descriptor, to newParent: borrowing Descriptor
  ) throws(Errno) {
    if renamesLeavingWhiteouts.load(ordering: .relaxed) {
      do throws(Errno) {
        let flags: Descriptor.RenameMode = move.replacesOwn ? .whiteout : [.whiteout, .noReplace]
        return try parent.rename(move.name, to: move.newName, in: newParent, flags)
      } catch {
        if error != .invalidArgument { throw error }
      }
    }
    try moveWithoutFlag(move, from: parent, to: newParent)
    renamesLeavingWhiteouts.store(false, ordering: .relaxed)
  }

  /// Removes the whiteouts from a directory that shows nothing, so that it can be replaced.
  /// - Returns: false if it cannot be made opaque without an entry in it.
  private func clearTarget(_ name: CName, in parent: borrowing Descriptor) throws(Errno) -> Bool {
    let target = try parent.open(name, [.pathOnly, .directory, .noFollow])
    // Before anything is changed: names that the view hides keep the directory from being replaced.
    if try whiteouts.clearable(target).isEmpty { return true }
    // What the whiteouts hide must stay hidden if the rename fails.
    guard try whiteouts.makeOpaque(target) else { return false }
    try whiteouts.clear(target)
    return true
  }

  /// Replaces a directory that contains nothing but markers.
  private func swapWithTarget(
    _ move: Move, from parent: borrowing Descriptor, to newParent: borrowing Descriptor, leavesDevice: Bool
  ) throws(Errno) {
    try parent.rename(move.name, to: move.newName, in: newParent, .exchange)
    if leavesDevice, try replaceByDevice(move.name, in: parent, isDirectory: true) { return }
    if leavesDevice { _ = try whiteouts.makeMarker(of: move.name, in: parent) }
    try removeByWorkFolder(move.name, in: parent)
  }

  /// Exchanges the entry with the whiteout, where one is needed or a directory cannot replace it.
  private func moveOntoWhiteout(
    _ move: Move, from parent: borrowing Descriptor, to newParent: borrowing Descriptor, leavesDevice: Bool
  ) throws(Errno) {
    guard leavesDevice || move.isDirectory else {
      return try parent.rename(move.name, to: move.newName, in: newParent)
    }
    try parent.rename(move.name, to: move.newName, in: newParent, .exchange)
    // It hides nothing.
    if !leavesDevice { try? parent.remove(move.name, isDirectory: false) }
  }

  /// Moves an entry and leaves a whiteout on a file system without `RENAME_WHITEOUT`. A process that dies in between
  /// leaves a file under both names.
  private func moveWithoutFlag(
    _ move: Move, from parent: borrowing Descriptor, to newParent: borrowing Descriptor
  ) throws(Errno) {
    if move.isDirectory, move.replacesOwn {
      return try swapWithTarget(move, from: parent, to: newParent, leavesDevice: true)
    }
    if move.isDirectory {
      guard try whiteouts.makeDevice(move.newName, in: newParent) else { throw .invalidArgument }
      do throws(Errno) {
        return try parent.rename(move.name, to: move.newName, in: newParent, .exchange)
      } catch {
        try? newParent.remove(move.newName, isDirectory: false)
        throw error
      }
    }
    try work.withName { folder, temporary throws(Errno) in
      try folder.link(try parent.open(move.name, [.pathOnly, .noFollow]), as: temporary)
      do throws(Errno) {
        if move.replacesOwn {
          try folder.rename(temporary, to: move.newName, in: newParent)
        } else {
          try folder.renameNew(temporary, to: move.newName, in: newParent)
        }
      } catch {
        try? folder.remove(temporary, isDirectory: false)
        throw error
      }
    }
    try replaceByWhiteout(move.name, in: parent)
  }
}

extension Entry {
  /// The topmost layer that has it.
  fileprivate var layer: Int {
    switch self {
    case .file(let layer, _): layer
    case .directory(let directory, _): directory.top.layer
    }
  }

  private var identity: FileIdentity {
    switch self {
    case .file(_, let attributes): attributes.identity
    case .directory(let directory, _): directory.top.identity
    }
  }

  /// Whether both are names of one file.
  public func isSame(as other: Entry?) -> Bool {
    other.map { $0.layer == layer && $0.identity == identity } ?? false
  }
}

extension Descriptor {
  /// Calls renameat2(2) with `RENAME_NOREPLACE`; where the file system lacks that, the name is looked up before.
  /// - Throws: EEXIST.
  func renameNew(_ name: CName, to newName: CName, in directory: borrowing Descriptor) throws(Errno) {
    do throws(Errno) {
      try rename(name, to: newName, in: directory, .noReplace)
    } catch {
      if error != .invalidArgument { throw error }
      if try directory.contains(newName) { throw .fileExists }
      try rename(name, to: newName, in: directory)
    }
  }
}
