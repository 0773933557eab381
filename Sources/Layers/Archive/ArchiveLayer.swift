import CLibrary
import Posix
import RemoteFiles

/// A layer that is an archive, or a folder inside one.
///
/// The table of contents is read once, and again after the file was replaced or modified; lookups and
/// listings use the index in memory. If the new file cannot be read, the former index stays in use.
public final class ArchiveLayer: Sendable {
  /// The absolute path of the archive, without symbolic links; or its URL, redacted.
  public let archivePath: [UInt8]
  /// The archive's file on a server; nil for one of this machine.
  public var remote: RemoteFile? { location.remote }
  /// The paths of archives within archives, the outermost first.
  public let inner: [[[UInt8]]]
  /// The path from the root of the innermost archive to the folder that is the layer.
  public let folder: [[UInt8]]
  /// The folder of the view at which the layer is laid: its names from the root; none for the root itself.
  public let laidAt: [[UInt8]]
  private let encoding: NameEncoding?
  /// The layer's index in the stack, 0 on top.
  let index: Int
  /// The layer's ID, which it keeps when the stack changes.
  private let id: LayerID
  let cache: ContentCache
  /// Passes the calls on the archive's file.
  public let gate: LayerGate
  private let state: Locked<State>
  /// Held during a reload.
  private let reading = Locked(order: 20, ())
  private let location: ArchiveLocation
  /// The contents in use, by inode number.
  private let contents = Locked<[UInt64: WeakContent]>(order: 30, [:])
  let served = ServedEntries()
  /// States that a predecessor had open for readers.
  let former: Locked<[ArchiveIndex]>
  /// Entries that have no owner of their own belong to the mounting user, as if extracted by that user.
  private let owner = geteuid()
  private let group = getegid()

  private struct State {
    var index: ArchiveIndex
    /// The file's status when it was last loaded, or when loading failed.
    var seen: FileStatus?
    var reloadError: ArchiveError?
    /// Whether no watch reports changes of the file.
    var isUnwatched = true
  }

  private struct WeakContent {
    weak var content: ArchiveContent?
  }

  /// The name with which the layer can be opened again: as `path`, with the whole URL.
  public var recordedPath: (path: [UInt8], archiveLength: Int) {
    let archive = remote?.url.text ?? archivePath
    return (archive + path[archivePath.count...], archive.count)
  }

  /// Opens an archive.
  /// - Parameters:
  ///   - archivePath: its path, or its whole URL.
  ///   - index: in the stack.
  ///   - id: by default the index.
  ///   - foldsNames: whether names are compared without case.
  ///   - hidden: the names that the view hides.
  ///   - place: the folder of the view at which the layer is laid.
  ///   - progress: receives the bytes of the table of contents, or of the file, read so far, and the total.
  public init(
    archivePath: [UInt8], inner: [[[UInt8]]] = [], folder: [[UInt8]] = [], encoding: NameEncoding? = nil,
    index: Int, id: LayerID? = nil, cache: ContentCache, foldsNames: Bool = false,
    hidden: HiddenNames? = nil, at place: [[UInt8]] = [],
    progress: (UInt64, UInt64) -> Void = { _, _ in }
  ) throws(ArchiveError) {
    self.archivePath = RemoteURL.redacted(archivePath)
    laidAt = place
    self.inner = inner
    self.folder = folder
    self.encoding = encoding
    self.index = index
    self.id = id ?? LayerID(rawValue: UInt16(truncatingIfNeeded: index))
    self.cache = cache
    location = try ArchiveLocation(archivePath, cache.remote)
    let inherited = InheritedArchives(
      cache.registry, layer: self.id.place, folder: folder, encoding: encoding, cache.owners,
      isInner: !inner.isEmpty, location.remote)
    former = Locked(inherited.former)
    let first: ArchiveIndex
    if let present = inherited.present {
      first = present
    } else {
      first = try Self.naming(archivePath) { [location] () throws(ArchiveError) in
        let source = try location.source(path: archivePath, generation: inherited.nextGeneration)
        let archive = try source.archive(inside: inner, encoding: encoding)
        return try ArchiveIndex.read(
          archive, folder: folder, encoding: encoding, after: inherited.nextInode, owners: cache.owners,
          progress: progress)
      }
    }
    let type = location.remote == nil ? try? first.source.descriptor.fileSystemType() : nil
    gate = LayerGate(
      layer: index, isRemote: location.remote != nil || type.map(FileSystemType.isRemote) ?? false,
      foldsNames: foldsNames, hidden: hidden)
    state = Locked(State(index: first, seen: first.source.attributes))
    if inherited.present == nil { register(first) }
    setLimits(of: first)
  }

  /// Runs the body, which opens an archive; its name can tell why it cannot.
  private static func naming(
    _ path: [UInt8], _ body: () throws(ArchiveError) -> ArchiveIndex
  ) throws(ArchiveError) -> ArchiveIndex {
    do throws(ArchiveError) { return try body() } catch {
      let name = path.split(separator: EntryName.slash).last.map { Array($0) } ?? []
      throw error.isOfIncompleteFile && ArchivePart.isName(name) ? .part : error
    }
  }

  /// Records a state before anything is answered from it.
  private func register(_ index: ArchiveIndex) {
    guard let registration = cache.registry?.register(index, layer: id.place) else { return }
    index.source.registration.withLock { $0 = registration }
  }

  /// The name shown to users.
  public var path: [UInt8] {
    let paths = folder.isEmpty ? inner : inner + [folder]
    return paths.reduce(archivePath) {
      $0 + Array("!/".utf8) + Array($1.joined(separator: [EntryName.slash]))
    }
  }

  /// The directory at the root of the view.
  public var root: LayerDirectory {
    laidAt.isEmpty ? ownRoot : FoldersAbove(laidAt, .archive(self)).directory(gate)
  }

  /// The root directory of the layer itself.
  public var ownRoot: LayerDirectory {
    if state.withLock({ $0.isUnwatched }), isOutdated { _ = reload() }
    return directory(ArchiveIndex.firstInode, gate.hidden?.root.entering(laidAt))
  }

  /// Calls `statvfs(3)` for the file system that holds the archive.
  public func statvfs() throws(Errno) -> statvfs {
    try gate.call { () throws(Errno) in try current.source.descriptor.statvfs() }
  }

  var current: ArchiveIndex { state.withLock { $0.index } }

  /// Why the archive's present content is not in use; nil if it is.
  public var reloadError: ArchiveError? { state.withLock { $0.reloadError } }

  /// The statistics of an archive.
  public struct Statistics: Sendable {
    /// `zip`, `7z`, `tar`, `iso` and so on; with the compression of the whole: `tar.gz`, `cpio.gz`.
    public let format: String
    /// Entries in the table of contents.
    public let entries: Int
    /// Of the layer's folder.
    public let files: Int
    public let folders: Int
    /// Names that are not visible.
    public let skipped: [SkippedNames]
    /// Files that are visible, but cannot be read.
    public let unreadable: [UnreadableEntries]
    /// Entries whose backslashes were taken for slashes, since Windows programs have made them.
    public let backslashed: Int
    /// Whether another tar archive follows this one in the file, which is not shown.
    public let hasAppended: Bool
  }

  /// Why nothing of the archive is visible although it has entries, for users; nil if anything is, or if it has none.
  public var emptinessReason: String? {
    let statistics = statistics
    guard statistics.files + statistics.folders == 0, statistics.entries > 0, !statistics.skipped.isEmpty
    else {
      return nil
    }
    let reasons = statistics.skipped.map { "\($0.count) (\($0.reason.rawValue))" }
    return "none of its entries is visible; skipped: " + reasons.joined(separator: ", ")
  }

  /// The present statistics.
  public var statistics: Statistics {
    let index = current
    let (files, folders) = index.counts
    return Statistics(
      format: index.container?.format.name ?? "zip", entries: index.entries, files: files, folders: folders,
      skipped: index.skipped,
      unreadable: index.tree.unreadable(hasPassword: !cache.pool.passwords.isEmpty),
      backslashed: index.backslashed, hasAppended: index.container?.hasAppended == true)
  }

  /// The layer that lies in the only folder at this one's root, as `path`; nil if there is anything else.
  public var wrappedPath: (folder: [UInt8], path: [UInt8])? {
    guard let name = current.wrapper else { return nil }
    return (name, path + (folder.isEmpty ? Array("!/".utf8) : [EntryName.slash]) + name)
  }

  // MARK: - Files

  /// The entries of a layer share a device number that no disk has: 4095 is the largest major number.
  func identity(_ inode: UInt64) -> FileIdentity {
    let device = deviceNumber(major: 4095, minor: UInt32(id.rawValue))
    return FileIdentity(device: device, inode: inode, born: TimeSpec(seconds: 0, nanoseconds: 0))
  }

  func attributes(of node: ArchiveNode, in index: ArchiveIndex) -> FileStatus {
    let own = index.attributes(of: node)
    var attributes = FileStatus(
      identity: identity(node.inode), mode: UInt32(node.mode), owner: own?.owner ?? owner,
      group: own?.group ?? group, size: node.isFolder ? 0 : node.size, modified: node.modificationTime)
    attributes.links = node.isFolder ? 1 : 1 + UInt32(node.otherNames)
    if node.hasChecksum { attributes.checksum = node.crc }
    if node.isDevice { attributes.rdev = UInt64(node.crc) }
    return attributes
  }

  func directory(_ inode: UInt64, _ place: HiddenNames.Place?) -> LayerDirectory {
    LayerDirectory(layer: index, identity: identity(inode), archive: self, place: place)
  }

  /// The content of a file, shared by all readers.
  /// - Returns: nil if the index is no longer the present one.
  func content(of node: ArchiveNode, in index: ArchiveIndex) -> ArchiveContent? {
    contents.withLock { contents in
      // `reload` publishes the new index before it moves the open contents to it.
      if index !== current { return nil }
      if let present = contents[node.inode]?.content { return present }
      let content = makeContent(of: node, in: index)
      // Purges dead references before the dictionary grows.
      if contents.count >= 1024, contents.count == contents.capacity {
        contents = contents.filter { $0.value.content != nil }
      }
      contents[node.inode] = WeakContent(content: content)
      return content
    }
  }

  /// The content of a file, without looking for one that is open.
  func makeContent(of node: ArchiveNode, in index: ArchiveIndex) -> ArchiveContent {
    ArchiveContent(
      node, at: index.header(of: node), attributes(of: node, in: index), gate, cache.pool, served,
      index.extendedAttributes(of: node))
  }

  // MARK: - Changes

  /// Records whether a watch reports changes of the file and leads to `reload`.
  public func setWatched(_ isWatched: Bool) { state.withLock { $0.isUnwatched = !isWatched } }

  /// Whether the file was replaced or modified since it was last loaded.
  public var isOutdated: Bool {
    let seen = state.withLock { $0.seen }
    let now: FileStatus?
    do throws(Errno) { now = try attributesNow() } catch {
      // A thread that must not wait leaves the question to one that may.
      if error == .deferred || error == .skipped { return false }
      now = nil
    }
    return seen?.identity != now?.identity || seen?.size != now?.size || seen?.modified != now?.modified
  }

  private func attributesNow() throws(Errno) -> FileStatus { try location.attributes(gate) }

  /// Opens the directory that holds the archive again by its path, since builds may recreate it.
  /// - Parameter mount: the id of the mount that contained it initially.
  /// - Returns: whether it is another directory now.
  public func reopenParent(mount: Int) -> Bool { location.reopenFolder(of: archivePath, mount: mount) }

  /// Calls the body with a path to watch the archive's file by inotify(7).
  /// - Throws: EOPNOTSUPP for one on a server.
  public func withWatchPath<Result>(_ body: (CName) throws(Errno) -> Result) throws(Errno) -> Result {
    try location.withWatchPath(body)
  }

  /// Reloads the archive if it was replaced or modified.
  /// - Returns: nil if there are no differences or the file cannot be read, which sets `reloadError`.
  public func reload() -> ArchiveDifference? {
    if gate.isIsolated, LayerAccess.current != .waiting {
      LayerAccess.recordDeferral(to: index)
      return nil
    }
    return reading.withLock { _ in
      let former = current
      // Another thread may have reloaded it.
      if !isOutdated { return nil }
      var seen = try? attributesNow()
      do throws(ArchiveError) {
        let source = try open(generation: former.source.generation &+ 1)
        seen = source.attributes
        let difference = ArchiveDifference(from: former, to: try replace(former, by: source))
        return difference.isEmpty ? nil : difference
      } catch {
        // A file that is being written will change again, and a server that does not answer may do so later.
        let isAgain = error == .changing || error.isOfServer
        state.withLock { ($0.seen, $0.reloadError) = (isAgain ? nil : seen, error) }
        if !isAgain { failWaiters(of: former) }
        return nil
      }
    }
  }

  /// Continues with a new state of the archive. A file of which bytes were returned that were never verified becomes
  /// another file, so that no reader gets a part of its content from one state and a part from the next.
  private func replace(_ former: ArchiveIndex, by source: ArchiveSource) throws(ArchiveError) -> ArchiveIndex
  {
    var distrusted = served.unverified(byOtherThan: source.generation)
    var index = try ArchiveIndex.read(
      source, folder: folder, encoding: encoding, former: former, distrusted: distrusted,
      owners: cache.owners)
    while true {
      register(index)
      setLimits(of: index)
      state.withLock { ($0.index, $0.seen, $0.reloadError) = (index, source.attributes, nil) }
      moveContents(to: index)
      // Readers went on meanwhile; from now on those of this state do.
      let late = served.unverified(byOtherThan: source.generation).subtracting(distrusted)
      if late.isEmpty { break }
      distrusted.formUnion(late)
      index = ArchiveIndex(index, replacing: late)
    }
    served.removeAll(except: index.tree)
    return index
  }

  private func open(generation: UInt32) throws(ArchiveError) -> ArchiveSource {
    try location.source(generation: generation).archive(inside: inner, encoding: encoding)
  }

  /// Moves open contents to the new index where it has the same content.
  private func moveContents(to index: ArchiveIndex) {
    var left = openContents()
    if left.isEmpty { return }
    for node in index.tree.nodes where !node.isFolder {
      guard let content = left.removeValue(forKey: node.inode) else { continue }
      content.move(
        to: index.header(of: node), node, attributes(of: node, in: index),
        index.extendedAttributes(of: node))
      if left.isEmpty { break }
    }
    // The new archive lacks the rest. Those in use keep the former file open and are accounted for again.
    for content in left.values { content.detach() }
    let detached = left.values.map { WeakContent(content: $0) }
    left = [:]
    for entry in detached { entry.content?.accountDetached() }
  }

  private func openContents() -> [UInt64: ArchiveContent] {
    contents.withLock { contents in
      contents = contents.filter { $0.value.content != nil }
      return contents.compactMapValues(\.content)
    }
  }

  private func failWaiters(of index: ArchiveIndex) {
    index.source.expireDeadline()
    for content in openContents().values { content.endReloadWait() }
  }
}
