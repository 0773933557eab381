import Fuse
import Glibc
import Layers
import Posix

/// Layers that are archives: read anew when their file changes, by a thread of its own, since a large one takes
/// seconds.
extension LayerWatcher {
  /// Milliseconds after a write to an archive before it is looked at: many are made in many writes.
  private static let patience: UInt32 = 20

  /// Has a layer's archive watched. Where that cannot be, it is looked at now and then.
  func watchArchive(_ archive: ArchiveLayer, _ layer: Int) {
    do throws(Errno) {
      try archive.withWatchPath { path throws(Errno) in try watches.watchArchive(path, layer) }
      if fault(of: layer) == Self.noWatches { note(fault: nil, of: layer) }
    } catch {
      // One that is not there is not written to; its coming is told by the directory.
      if error != .noSuchFileOrDirectory { note(fault: Self.noWatches, of: layer) }
    }
    archive.note(isWatched: true)
  }

  private static let noWatches = "no more inotify watches: raise the sysctl fs.inotify.max_user_watches"

  /// Looks whether an archive is another one by now, or was written to.
  /// - Returns: whether its directory is another one.
  func lookAtArchive(_ archive: ArchiveLayer, _ layer: Int, _ volume: Volume) -> Bool {
    let isElsewhere = mount(of: layer).map { archive.reopenParent(mount: $0.id) } ?? false
    if archive.isOutdated { readAnew(archive, layer, volume, isPatient: false) }
    return isElsewhere
  }

  /// An event of an archive itself.
  func archiveChanged(_ layer: Int, _ mask: InotifyEvent.Mask, _ volume: Volume) -> [Invalidation] {
    guard let archive = archives[layer], archive.isOutdated else { return [] }
    readAnew(archive, layer, volume, isPatient: mask.isDisjoint(with: [.closeWrite, .attributes]))
    return []
  }

  /// Has a barrier reached after what the archives that are about to be read bring.
  func pass(_ barrier: @escaping @Sendable () -> Void) {
    let isTaken = archiveErrands?.add { [queue] in _ = queue.addBarrier(barrier) } ?? false
    if !isTaken { _ = queue.addBarrier(barrier) }
  }

  private func readAnew(_ archive: ArchiveLayer, _ layer: Int, _ volume: Volume, isPatient: Bool) {
    // One that waits already has not looked yet.
    guard note(archive: layer, isWaiting: true) else { return }
    _ = archiveErrands?.add { [self] in
      if isPatient { usleep(Self.patience * 1000) }
      _ = note(archive: layer, isWaiting: false)
      // Before it is read, so that nothing is missed.
      watchArchive(archive, layer)
      guard let difference = archive.reload() else { return }
      for batch in difference.items.indices.batches(of: 1000) {
        queue.add(
          volume.table.withLock { ArchiveChanges.invalidations(for: difference, batch, layer, in: &$0) })
      }
      if difference.isRootChanged {
        let change = LayerChange(directory: .root, layer: layer, name: [], mask: .attributes)
        queue.add(volume.table.withLock { ChangeMapper.invalidations(for: change, in: &$0) })
      }
    }
  }
}

/// From the difference of two archives to what it makes untrue: as if each of its items had happened in a
/// directory.
enum ArchiveChanges {
  /// What some of a difference's items make untrue. Also notes in the table that files left their names.
  static func invalidations(
    for difference: ArchiveDifference, _ batch: Range<Int>, _ layer: Int, in table: inout NodeTable
  ) -> [Invalidation] {
    var directories: [UInt64: NodeID?] = [:]
    var found: [Invalidation] = []
    for item in difference.items[batch] {
      let number = difference.folderNumber(of: item)
      let directory = directories[number] ?? directory(at: difference.folder(of: item), table)
      directories[number] = .some(directory)
      // Of what is in a directory that the kernel does not know nothing is cached.
      guard let directory else { continue }
      let change = LayerChange(
        directory: directory, layer: layer, name: difference.name(of: item), mask: mask(of: item))
      found += ChangeMapper.invalidations(for: change, in: &table)
    }
    return found
  }

  private static func directory(at path: [[UInt8]], _ table: NodeTable) -> NodeID? {
    var slot = NodeTable.root
    for name in path {
      slot = table.directory(name, in: slot)
      if slot == 0 { return nil }
    }
    return table.number(of: slot)
  }

  private static func mask(of item: ArchiveDifference.Item) -> InotifyEvent.Mask {
    let mask: InotifyEvent.Mask =
      switch item.kind {
      case .created: .created
      case .deleted: .deleted
      case .replaced: [.movedFrom, .movedTo]
      case .attributes: .attributes
      case .content: .modified
      }
    return item.isFolder ? mask.union(.isDirectory) : mask
  }
}

extension Range<Int> {
  /// The range in pieces, in order.
  fileprivate func batches(of count: Int) -> [Range<Int>] {
    stride(from: lowerBound, to: upperBound, by: count).map { $0..<Swift.min($0 + count, upperBound) }
  }
}
