import Layers
import Posix

/// The archives that the page has read from, opened until they change.
final class UIArchives: Sendable {
  private struct Opened {
    let file: FileStatus
    let index: Int
    let layer: ArchiveLayer
  }

  /// The most archives that are kept open.
  private static let most = 16
  private let contents = ContentCache(budget: 64 << 20)
  private let opened = Locked<[[UInt8]: Opened]>([:])

  /// - Parameters:
  ///   - mounted: the layer that it is.
  ///   - index: of the layer.
  func open(
    _ archive: ArchivePath, _ mounted: MountedLayer, _ index: Int, _ status: UIStatus
  ) throws(ArchiveError) -> ArchiveLayer {
    let file: FileStatus
    do throws(Errno) { file = try Descriptor.open(archive.archive, [.pathOnly]).attributes() } catch {
      throw .unreadable(error)
    }
    let known = opened.withLock { $0[mounted.path] }
    if let known, known.index == index, known.file.isSameContent(as: file) { return known.layer }
    let layer = try archive.open(
      index: index, status.encoding, contents, foldsNames: status.foldsNames, at: mounted.laidPath.place,
      progress: { _, _ in })
    opened.withLock { opened in
      if opened.count >= Self.most { opened = [:] }
      opened[mounted.path] = Opened(file: file, index: index, layer: layer)
    }
    return layer
  }
}

extension FileStatus {
  fileprivate func isSameContent(as other: FileStatus) -> Bool {
    identity == other.identity && size == other.size && modified == other.modified && changed == other.changed
  }
}
