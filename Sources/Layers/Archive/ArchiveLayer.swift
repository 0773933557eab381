import Glibc
import Posix

/// A layer that is a zip archive, or a folder inside one.
///
/// Its table of contents is read once, and again when the file is another one or was written to; lookups and
/// listings need the archive no more. As long as a new one cannot be read, the last that could is in force.
public final class ArchiveLayer: Sendable {
  /// The absolute path of the archive.
  public let archivePath: [UInt8]
  /// The names from the archive's root to the folder that is the layer.
  public let folder: [[UInt8]]
  /// The layer's place in the stack, 0 on top.
  let index: Int
  let cache: ContentCache
  private let state: Locked<State>
  /// Held while the archive is read anew.
  private let reading = Locked(())
  /// The directory that holds the archive, and the archive's name there.
  private let parent: Locked<SharedDescriptor>
  private let name: [UInt8]
  /// Who opens and unpacks what, by inode number.
  private let contents = Locked<[UInt64: WeakContent]>([:])
  private let unverified = UnverifiedEntries()
  /// Whose the entries are: who mounts, as if he had unpacked them.
  private let owner = geteuid()
  private let group = getegid()

  private struct State {
    var index: ArchiveIndex
    /// As the file was when it was read, or could not be read, last.
    var seen: FileStatus?
    var reloadError: ArchiveError?
    /// Whether nobody watches the archive.
    var isUnwatched = true
  }

  private struct WeakContent {
    weak var content: ArchiveContent?
  }

  /// Opens an archive.
  /// - Parameters:
  ///   - archivePath: its absolute path, without symbolic links.
  ///   - folder: the names from its root to the folder that the layer is.
  ///   - index: the layer's place in the stack, 0 on top.
  ///   - progress: called now and then while the table of contents is read, with the bytes read and all.
  public init(
    archivePath: [UInt8], folder: [[UInt8]] = [], index: Int, cache: ContentCache,
    progress: (UInt64, UInt64) -> Void = { _, _ in }
  ) throws(ArchiveError) {
    self.archivePath = archivePath
    self.folder = folder
    self.index = index
    self.cache = cache
    let source = try ArchiveSource(path: archivePath)
    let slash = archivePath.lastIndex(of: EntryName.slash) ?? 0
    name = Array(archivePath[(slash + 1)...])
    do throws(Errno) {
      parent = Locked(
        try withCName(Array(archivePath[...slash])) { name throws(Errno) in
          SharedDescriptor(try Descriptor.open(name, [.pathOnly, .directory]))
        })
    } catch { throw .unreadable(error) }
    let first = try ArchiveIndex.read(source, folder: folder, progress: progress)
    state = Locked(State(index: first, seen: source.attributes))
  }

  /// The name of the layer for users.
  public var path: [UInt8] {
    folder.isEmpty
      ? archivePath : archivePath + Array("!/".utf8) + Array(folder.joined(separator: [EntryName.slash]))
  }

  /// The folder that the layer is.
  public var root: LayerDirectory {
    if state.withLock({ $0.isUnwatched }) { refresh() }
    return directory(ArchiveIndex.firstInode)
  }

  /// Statistics of the file system that holds the archive.
  public func statvfs() throws(Errno) -> statvfs {
    try current.source.descriptor.statvfs()
  }

  /// What the archive contains.
  var current: ArchiveIndex { state.withLock { $0.index } }

  /// Why what the layer shows is not what the archive has now; nil if it is.
  public var reloadError: ArchiveError? { state.withLock { $0.reloadError } }

  /// What there is to tell of the archive.
  public struct Statistics: Sendable {
    /// Entries in the table of contents.
    public let entries: Int
    /// Of the layer.
    public let files: Int
    public let folders: Int
    /// Names that are not shown.
    public let skipped: [SkippedNames]
  }

  /// What there is to tell of the archive.
  public var statistics: Statistics {
    let index = current
    let (files, folders) = index.counts
    return Statistics(entries: index.entries, files: files, folders: folders, skipped: index.skipped)
  }

  // MARK: - Files

  /// All entries of a layer are on one device, which no disk has: 4095 is the last major number.
  private var device: UInt64 { deviceNumber(major: 4095, minor: UInt32(index)) }

  func identity(_ inode: UInt64) -> FileIdentity {
    FileIdentity(device: device, inode: inode, born: TimeSpec(seconds: 0, nanoseconds: 0))
  }

  func attributes(of node: ArchiveNode) -> FileStatus {
    var attributes = FileStatus(
      identity: identity(node.inode), mode: UInt32(node.mode), owner: owner, group: group,
      size: node.isFolder ? 0 : node.size, modified: node.modificationTime)
    if node.isFolder { attributes.links = 1 }
    return attributes
  }

  func directory(_ inode: UInt64) -> LayerDirectory {
    LayerDirectory(layer: index, identity: identity(inode), archive: self)
  }

  /// The content of a file, the same for all who want it.
  /// - Returns: nil if the index is not the present one any more.
  func content(of node: ArchiveNode, in index: ArchiveIndex) -> ArchiveContent? {
    contents.withLock { contents in
      // A new one is in force before what is open is moved to it.
      if index !== current { return nil }
      if let present = contents[node.inode]?.content { return present }
      let content = ArchiveContent(
        node, at: header(of: node, in: index), attributes(of: node), cache.pool, unverified)
      // Those that are gone are looked for when there may be many.
      if contents.count >= 1024, contents.count == contents.capacity {
        contents = contents.filter { $0.value.content != nil }
      }
      contents[node.inode] = WeakContent(content: content)
      return content
    }
  }

  private func header(of node: ArchiveNode, in index: ArchiveIndex) -> LocalHeader {
    LocalHeader(
      source: index.source, header: node.offset.addingReportingOverflow(index.prefixLength).partialValue,
      end: index.dataEnd)
  }

  // MARK: - Changes

  /// Notes whether somebody watches the archive, and will call `reload` when it changes.
  public func setWatched(_ isWatched: Bool) { state.withLock { $0.isUnwatched = !isWatched } }

  /// Whether the file is another one than was read last, or was written to since.
  public var isOutdated: Bool {
    let seen = state.withLock { $0.seen }
    let now = try? attributesNow()
    return seen?.identity != now?.identity || seen?.size != now?.size || seen?.modified != now?.modified
  }

  private func attributesNow() throws(Errno) -> FileStatus {
    let folder = parent.withLock { $0 }
    return try withCName(name) { name throws(Errno) in try folder.descriptor.attributes(of: name) }
  }

  /// Takes the directory that holds the archive from its path again: builds remove their folders and make them
  /// anew.
  /// - Parameter mount: the number of the mount that held it at the beginning.
  /// - Returns: whether it is another one by now.
  public func reopenParent(mount: Int) -> Bool {
    let slash = archivePath.lastIndex(of: EntryName.slash) ?? 0
    var holder = 0
    let found = try? withCName(Array(archivePath[...slash])) { name throws(Errno) in
      SharedDescriptor(try Descriptor.openNoSymlinks(name, mount: &holder))
    }
    guard let found, holder == mount else { return false }
    return parent.withLock { parent in
      let isSame =
        (try? parent.descriptor.attributes().identity) == (try? found.descriptor.attributes().identity)
      parent = found
      return !isSame
    }
  }

  /// Runs the body with a path by which inotify(7) finds the file that the archive's path leads to now.
  public func withWatchPath<Result>(_ body: (CName) throws(Errno) -> Result) throws(Errno) -> Result {
    let folder = parent.withLock { $0 }
    return try folder.descriptor.withWatchPath(of: name, body)
  }

  private func refresh() {
    if isOutdated { _ = reload() }
  }

  /// Reads the archive anew if it is another one, or was written to.
  /// - Returns: what is different from before; nil where nothing is, or where it cannot be read: `fault` then
  ///   tells why.
  public func reload() -> ArchiveDifference? {
    reading.withLock { _ in
      let former = current
      // Somebody else may have done it.
      if !isOutdated { return nil }
      var seen = try? attributesNow()
      do throws(ArchiveError) {
        let source = try open()
        seen = source.attributes
        let index = try ArchiveIndex.read(source, folder: folder, former: former)
        state.withLock { state in
          (state.index, state.seen, state.reloadError) = (index, seen, nil)
        }
        let unverified = moveContents(to: index)
        let difference = ArchiveDifference(from: former, to: index, unverified: unverified)
        return difference.isEmpty ? nil : difference
      } catch {
        // A file that is being written to will have changed again.
        let isAgain = error == .changing
        state.withLock { ($0.seen, $0.reloadError) = (isAgain ? nil : seen, error) }
        if !isAgain { failWaiters(of: former) }
        return nil
      }
    }
  }

  private func open() throws(ArchiveError) -> ArchiveSource {
    let folder = parent.withLock { $0 }
    let handle: SharedDescriptor
    do throws(Errno) {
      handle = try withCName(name) { name throws(Errno) in
        SharedDescriptor(
          try folder.descriptor.open(name, [.read, .noFollow, .nonBlocking, .noControllingTerminal]))
      }
    } catch { throw .unreadable(error) }
    return try ArchiveSource(copy: handle)
  }

  /// What is open goes on with the new archive where that has the same content.
  /// - Returns: the inode numbers of those of which something was handed out that nobody found right.
  private func moveContents(to index: ArchiveIndex) -> Set<UInt64> {
    var lost = Set<UInt64>()
    var left = openContents { open in lost = unverified.take { open[$0] != nil } }
    if left.isEmpty { return lost }
    for node in index.tree.nodes where !node.isFolder {
      guard let content = left.removeValue(forKey: node.inode) else { continue }
      if content.move(to: header(of: node, in: index), node, attributes(of: node)) {
        lost.insert(node.inode)
      }
      if left.isEmpty { break }
    }
    detach(&left)
    return lost
  }

  /// Lets go of contents that the archive has no more, but for those that somebody reads: they hold the former
  /// archive's file open.
  private func detach(_ contents: inout [UInt64: ArchiveContent]) {
    for content in contents.values { content.detach() }
    let detached = contents.values.map { WeakContent(content: $0) }
    contents = [:]
    for entry in detached { entry.content?.keep() }
  }

  /// - Parameter body: called while none can be added.
  private func openContents(
    _ body: ([UInt64: ArchiveContent]) -> Void = { _ in }
  ) -> [UInt64: ArchiveContent] {
    contents.withLock { contents in
      contents = contents.filter { $0.value.content != nil }
      let open = contents.compactMapValues(\.content)
      body(open)
      return open
    }
  }

  /// Whoever waits for a new archive hears that what came is none.
  private func failWaiters(of index: ArchiveIndex) {
    index.source.expireDeadline()
    for content in openContents().values { content.endReloadWait() }
  }
}
