import Fuse
import Glibc
import Holder
import Layers
import Posix
import Volume

/// A layer's root, for successors.
struct LayerRootRecord: BitwiseCopyable {
  /// -1 for an archive.
  var file: CInt = -1
  var root: DirectoryLayer.Root?
}

/// The memory that the holder and the workers of a mount share: the holder's state, the INIT request, the read locks, the
/// layers' roots, and from there on what the volume records.
final class SurvivalMemory: Sendable {
  let memory: SharedMemory
  /// The states of the layers that are archives.
  let archives: ArchiveRegistry
  private static let initPlace = HolderState.reserved
  private static let locksPlace = 2 * HolderState.reserved
  private static let largestInit = locksPlace - initPlace
  private static let (archivesPlace, rootsPlace) = (20 << 20, 24 << 20)
  private static let mostRoots = 4096

  /// - Throws: ENOMEM, EMFILE; EFBIG beyond RLIMIT_FSIZE.
  init() throws(Errno) {
    memory = try SharedMemory(name: "bundlefs", size: Volume.memorySize)
    archives = ArchiveRegistry(memory, at: Self.archivesPlace)
  }

  /// The memory of another program that this one replaces.
  init(resuming file: CInt) throws(Errno) {
    memory = try SharedMemory(mapping: Descriptor(owning: file))
    archives = ArchiveRegistry(memory, at: Self.archivesPlace)
  }

  var status: SurvivalStatus {
    SurvivalStatus(
      deaths: Int(state.deaths), lastStatus: state.lastStatus, upgrades: Int(state.upgrades))
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
  /// - Throws: EMFILE.
  func record(_ session: Session, _ stack: LayerStack, _ covered: CoveredMountPoint?) throws(Errno) {
    let request = session.initRequest
    guard request.count <= Self.largestInit, stack.layers.count <= Self.mostRoots else { return }
    request.withUnsafeBytes { bytes in
      guard let address = bytes.baseAddress else { return }
      (memory.base + Self.initPlace).copyMemory(from: address, byteCount: bytes.count)
    }
    let roots = memory.values(of: LayerRootRecord.self, at: Self.rootsPlace)
    for (index, layer) in stack.layers.enumerated() { roots[index] = try Self.record(of: layer) }
    state.device = session.descriptor
    // It is needed only where a layer can lead into the mount, and it would keep an automount from expiring.
    if let covered, stack.layers.contains(where: { $0.isPlainDirectory }) {
      state.beneath = try Descriptor.duplicate(of: covered.directory).release()
    }
    state.initSize = UInt32(request.count)
  }

  private static func record(of layer: Layer) throws(Errno) -> LayerRootRecord {
    guard let (root, file) = try layer.folder?.rootForSuccessor() else { return LayerRootRecord() }
    return LayerRootRecord(file: try Descriptor.duplicate(of: file).release(), root: root)
  }

  func roots(_ count: Int) -> [LayerRootRecord] {
    let roots = memory.values(of: LayerRootRecord.self, at: Self.rootsPlace)
    return (0..<min(count, Self.mostRoots)).map { roots[$0] }
  }

  private func keptFiles(layers: Int) -> [CInt] {
    var kept: [CInt] = [0, 1, 2, memory.file.rawValue, state.device, state.beneath]
    kept += roots(layers).map(\.file)
    kept += archives.files
    withUnsafeBytes(of: state.others) { kept += $0.bindMemory(to: CInt.self) }
    // The last two may have been closed meanwhile, unlike the nodes' files.
    return kept.filter { fcntl($0, F_GETFD) >= 0 } + Volume.openFiles(in: memory)
  }

  /// Lets the files that successors use stay open when the holder becomes another program.
  func keepFilesAcrossExec(layers: Int) {
    state.keepsFiles = 1
    for file in keptFiles(layers: layers) { _ = fcntl(file, F_SETFD, 0) }
  }

  /// Makes programs that this one runs not inherit the files; undoes `keepFilesAcrossExec`.
  func closeFilesOnExec(layers: Int) {
    if state.keepsFiles == 0 { return }
    for file in keptFiles(layers: layers) where file > STDERR_FILENO { _ = fcntl(file, F_SETFD, FD_CLOEXEC) }
    state.keepsFiles = 0
  }

  /// Closes the files that dead workers have left open, apart from those that successors use, on a thread of its own:
  /// closing a file of a layer that does not answer can block.
  func closeStaleFiles(layers: Int) {
    let stale = OpenDescriptors.others(than: keptFiles(layers: layers))
    try? Posix.Thread.startDetached(name: "stale files") { for file in stale { close(file) } }
  }
}

extension Layer {
  /// Whether it is a directory in which mounts are visible.
  fileprivate var isPlainDirectory: Bool { folder.map { !$0.isPrivateClone } ?? false }
}
