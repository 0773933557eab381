import Fuse
import Glibc
import Holder
import Layers
import Posix
import Synchronization
import Volume

/// A layer's root, for successors.
struct LayerRootRecord: BitwiseCopyable {
  /// The descriptor, plus 1: memory that nothing was written to holds no descriptor, least of all standard input.
  private var place: CInt = 0
  private var recorded: DirectoryLayer.Root?

  /// The record of an archive.
  init() {}

  init(file: CInt, root: DirectoryLayer.Root) { (place, recorded) = (file + 1, root) }

  /// -1 for an archive.
  var file: CInt { place - 1 }

  var root: DirectoryLayer.Root? { place == 0 ? nil : recorded }
}

/// The memory that the holder and the workers of a mount share: the holder's state, the INIT request, the read locks, the
/// layers and their roots, and from there on what the volume records.
final class SurvivalMemory: Sendable {
  let memory: SharedMemory
  /// The states of the layers that are archives.
  let archives: ArchiveRegistry
  private static let initPlace = HolderState.reserved
  private static let locksPlace = 2 * HolderState.reserved
  private static let largestInit = locksPlace - initPlace
  private static let archivesOffset = SharedRegions.archives.lowerBound
  private static let rootsOffset = SharedRegions.roots.lowerBound
  /// Of the number of the present layer table, and of the two places for one.
  private static let tableNumberOffset = SharedRegions.tableNumber.lowerBound
  private static let tableOffset = SharedRegions.tables.lowerBound
  private static let tableSize = SharedRegions.tables.count / 2

  /// - Throws: ENOMEM, EMFILE; EFBIG beyond RLIMIT_FSIZE.
  init() throws(Errno) {
    memory = try SharedMemory(name: "bundlefs", size: Volume.memorySize)
    archives = ArchiveRegistry(memory, at: Self.archivesOffset)
  }

  /// The memory of another program that this one replaces.
  init(resuming file: CInt) throws(Errno) {
    memory = try SharedMemory(mapping: Descriptor(owning: file))
    archives = ArchiveRegistry(memory, at: Self.archivesOffset)
  }

  var status: SurvivalStatus {
    let recently = TimeSpec.monotonic.seconds - Int64(SurvivalStatus.recentSeconds)
    return SurvivalStatus(
      deaths: Int(state.deaths), recentDeaths: state.deaths(since: recently), lastStatus: state.lastStatus,
      upgrades: Int(state.upgrades), failedUpgrades: Int(state.failedUpgrades),
      hangs: Int(state.hangs))
  }

  var state: HolderState {
    get { memory.values(of: HolderState.self, at: 0).pointee }
    _modify { yield &memory.values(of: HolderState.self, at: 0).pointee }
  }

  /// Held by the threads that read requests, while they do.
  var readLocks: RobustLocks { RobustLocks(in: memory, at: Self.locksPlace) }

  /// The most milliseconds for which a killed thread can wait for a processor to end its read(2).
  private static let readersTimeout: CInt = 5000

  /// Waits until no thread of a former worker reads requests. One that was killed in read(2) may still take a request
  /// once it has a processor, and only a FUSE_NOTIFY_RESEND after that brings such a request back.
  func waitForReaders() { readLocks.waitUntilFree(milliseconds: Self.readersTimeout) }

  var initRequest: [UInt8] {
    Array(UnsafeRawBufferPointer(start: memory.base + Self.initPlace, count: Int(state.initSize)))
  }

  /// Records what a successor needs to go on with a mount. Until then none is started.
  /// - Throws: EMFILE; E2BIG if there are too many layers.
  func record(_ session: Session, _ stack: LayerStack, _ covered: CoveredMountPoint?) throws(Errno) {
    let request = session.initRequest
    guard request.count <= Self.largestInit else { return }
    request.withUnsafeBytes { bytes in
      guard let address = bytes.baseAddress else { return }
      (memory.base + Self.initPlace).copyMemory(from: address, byteCount: bytes.count)
    }
    try record(stack)
    state.device = session.descriptor
    state.users = session.users + 1
    // It is needed only where a layer can lead into the mount, and it would keep an automount from expiring.
    if let covered, stack.layers.contains(where: { $0.isPlainDirectory }) {
      state.beneath = try Descriptor.duplicate(of: covered.directory).release()
    }
    state.initSize = UInt32(request.count)
  }

  // MARK: - Layers

  private func record(_ stack: LayerStack) throws(Errno) {
    guard stack.layers.count <= LayerTable.mostLayers else { throw Errno(rawValue: E2BIG) }
    var entries: [LayerTable.Entry] = []
    for (layer, id) in zip(stack.layers, stack.ids) {
      try recordRoot(of: layer, id)
      let (path, length) = layer.archive?.recordedPath ?? (layer.laidPath.path, 0)
      entries.append(
        LayerTable.Entry(id: id, path: path, archiveLength: length, place: layer.laidPath.place))
    }
    try write(LayerTable(layers: entries))
  }

  /// The present layers; nil before the mount.
  var layerTable: LayerTable? {
    let number = tableNumber.pointee
    if number == 0 { return nil }
    let place = memory.base + Self.place(ofTable: number)
    let size = Int(clamping: place.load(as: UInt64.self))
    guard size <= Self.tableSize - 8 else { return nil }
    return LayerTable(encoded: UnsafeRawBufferPointer(start: place + 8, count: size))
  }

  /// Makes the table the present one, at once.
  /// - Throws: E2BIG.
  func write(_ table: LayerTable) throws(Errno) {
    let bytes = table.encoded
    guard bytes.count <= Self.tableSize - 8 else { throw Errno(rawValue: E2BIG) }
    let number = tableNumber.pointee + 1
    let place = memory.base + Self.place(ofTable: number)
    place.storeBytes(of: UInt64(bytes.count), as: UInt64.self)
    bytes.withUnsafeBytes { bytes in
      if let address = bytes.baseAddress { (place + 8).copyMemory(from: address, byteCount: bytes.count) }
    }
    atomicMemoryFence(ordering: .releasing)
    tableNumber.pointee = number
  }

  private var tableNumber: UnsafeMutablePointer<UInt64> {
    memory.values(of: UInt64.self, at: Self.tableNumberOffset)
  }

  private static func place(ofTable number: UInt64) -> Int { tableOffset + (number & 1 == 1 ? 0 : tableSize) }

  private var roots: UnsafeMutablePointer<LayerRootRecord> {
    memory.values(of: LayerRootRecord.self, at: Self.rootsOffset)
  }

  func root(_ id: LayerID) -> LayerRootRecord { roots[id.place] }

  func recordRoot(of layer: Layer, _ id: LayerID) throws(Errno) {
    guard let (root, file) = try layer.folder?.rootForSuccessor() else {
      return roots[id.place] = LayerRootRecord()
    }
    roots[id.place] = LayerRootRecord(file: try Descriptor.duplicate(of: file).release(), root: root)
  }

  /// Forgets a layer that nothing refers to.
  func removeRoot(_ id: LayerID) {
    let file = roots[id.place].file
    roots[id.place] = LayerRootRecord()
    if file >= 0 { close(file) }
  }

  // MARK: - Files

  private var keptFiles: [CInt] {
    var kept: [CInt] = [
      0, 1, 2, memory.file.rawValue, state.device, state.users - 1, state.beneath, state.unreadEvents - 1,
      state.times - 1,
    ]
    kept += (layerTable?.all ?? []).map { root($0.id).file }
    kept += archives.files
    withUnsafeBytes(of: state.others) { kept += $0.bindMemory(to: CInt.self) }
    // The last two may have been closed meanwhile, unlike the nodes' files.
    return kept.filter { fcntl($0, F_GETFD) >= 0 } + Volume.openFiles(in: memory)
  }

  /// Lets the files that successors use stay open when the holder becomes another program.
  func keepFilesAcrossExec() {
    state.keepsFiles = 1
    for file in keptFiles { _ = fcntl(file, F_SETFD, 0) }
  }

  /// Makes programs that this one runs not inherit the files; undoes `keepFilesAcrossExec`.
  func closeFilesOnExec() {
    if state.keepsFiles == 0 { return }
    for file in keptFiles where file > STDERR_FILENO { _ = fcntl(file, F_SETFD, FD_CLOEXEC) }
    state.keepsFiles = 0
  }

  /// The events that the predecessor has left unread, to be called once; nil if it has not said that they tell all.
  func takeUnreadEvents() -> UnreadEvents? {
    let file = state.unreadEvents - 1
    state.unreadEvents = 0
    return file < 0 ? nil : UnreadEvents(owning: file)
  }

  /// The files that dead workers have left open, apart from those that successors use. To be called before this one opens
  /// any.
  var staleFiles: [CInt] { OpenDescriptors.others(than: keptFiles) }
}

extension Layer {
  /// Whether it is a directory in which mounts are visible.
  fileprivate var isPlainDirectory: Bool { folder.map { !$0.isPrivateClone } ?? false }
}
