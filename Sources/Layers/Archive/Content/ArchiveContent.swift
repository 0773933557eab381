import CLibrary
import Posix

/// The content of an entry, shared by all its readers.
///
/// A stored entry is read directly from the file. Any other is decoded from its beginning, a little further
/// than readers have asked for, into storage that the cache may evict. All but the last chunk of a large
/// one is returned before the checksum is verified, so that a read up to the end of a damaged entry fails.
///
/// If the archive's file is overwritten, or bytes of its former state were returned, no further bytes are
/// returned before the whole entry was decoded and verified.
final class ArchiveContent: @unchecked Sendable {
  let inode: UInt64
  let size: UInt64
  let cache: ContentPool
  /// Passes the calls on the archive's file.
  let gate: LayerGate
  let served: ServedEntries
  /// Whether bytes may be returned before all are verified.
  let isLarge: Bool
  let state: Locked<State>
  /// Its slot in `ContentLRU`, guarded by the pool's lock; 0 for none.
  var slot: UInt32 = 0

  /// The chunk size: small at first, then doubling up to the limit.
  static let firstStep = 16 << 10
  static let chunkSize = 256 << 10
  /// Up to this offset the reading thread decodes synchronously, in about a millisecond.
  static let smallSize: UInt64 = 256 << 10
  /// How far beyond a read the entry is decoded.
  static let largestReadAhead: UInt64 = 4 << 20
  /// Stored entries up to this size are verified before the first byte is returned; larger ones while they
  /// are read, if that is nearly in order.
  static let verifiedAtOnce: UInt64 = 1 << 20
  /// An entry above this size becomes another file in the next state of the archive, so that the next read need not
  /// wait for all of it.
  static let largestContinued: UInt64 = 64 << 20
  /// The memory of a content beside its bytes.
  static let overhead = 512

  /// Invariants:
  /// - `decoder` and `decodedHeader` are both there or both nil; with a decoder there is `storage`;
  /// - `storage` holds what `decoder` has decoded or, if `isComplete`, everything; without it nothing is `available`;
  /// - a content that waits for a reload is claimed by the thread that will go on (`isDecoding`), and holds nothing;
  /// - what is verified, unverified or waited for is within the entry.
  struct State {
    /// From the present index.
    var node: ArchiveNode
    var header: LocalHeader
    /// Offset of the first compressed byte, once the local file header was read.
    var start: UInt64?
    var attributes: FileStatus
    var extended: [ArchivedAttribute] = []
    /// Whether the present archive lacks the entry.
    var isDetached = false
    /// Up to where unverified bytes were returned.
    var unverifiedEnd: UInt64 = 0
    /// Whether bytes of a former state of the archive were returned.
    var continuesFormer = false
    /// Whether `served` has it with the present state of the archive.
    var isRecorded = false
    /// Stored entries: up to where they are in `checksum`.
    var verifiedEnd: UInt64 = 0
    var checksum: UInt32 = 0
    var failure: Errno?
    var storage: ContentStorage?
    /// The decoded bytes in `storage` that can be read.
    var available = DecodedRanges()
    var decoder: EntryDecoder?
    /// Where decoding can be resumed.
    var index = DecoderIndex()
    /// The header from which `decoder` reads.
    var decodedHeader: LocalHeader?
    var isComplete = false
    /// Whether the disk could not hold the decoded bytes.
    var avoidsDisk = false
    /// Whether a thread has claimed decoding.
    var isDecoding = false
    /// Whether the file was overwritten since `decoder` was created.
    var wasOverwritten = false
    /// The offset up to which to decode, even without waiters.
    var target: UInt64 = 0
    var waiters: [Waiter] = []
    /// The deadline of the wait for a reload, by `TimeSpec.monotonic`; nil if there is no wait.
    var reloadDeadline: TimeSpec?
  }

  struct Waiter {
    let range: Range<UInt64>
    let completion: @Sendable (Errno?) -> Void
  }

  init(
    _ node: ArchiveNode, at header: LocalHeader, _ attributes: FileStatus, _ gate: LayerGate,
    _ cache: ContentPool, _ served: ServedEntries, _ extended: [ArchivedAttribute] = []
  ) {
    inode = node.inode
    size = node.size
    self.gate = gate
    self.cache = cache
    self.served = served
    isLarge = size > (node.isStored ? Self.verifiedAtOnce : Self.smallSize) || !node.hasChecksum
    var first = State(node: node, header: header, attributes: attributes, extended: extended)
    first.continuesFormer = served.isServed(inode, byOtherThan: header.source.generation)
    state = Locked(order: 40, first)
  }

  var attributes: FileStatus { state.withLock { $0.attributes } }
  var extendedAttributes: [ArchivedAttribute] { state.withLock { $0.extended } }

  /// Continues with a new state of the archive, which has the same content as far as its index shows. Does nothing if
  /// unverified bytes were returned.
  func move(
    to header: LocalHeader, _ node: ArchiveNode, _ attributes: FileStatus,
    _ extended: [ArchivedAttribute] = []
  ) {
    let (wasWaiting, isEmpty, former) = state.withLock { state -> (Bool, Bool, AnyObject?) in
      let generation = header.source.generation
      if state.header.source === header.source || served.isUnverified(inode, byOtherThan: generation) {
        return (false, false, nil)
      }
      // Verified content is the same in the new archive.
      let isKept = state.isComplete && state.node.hasChecksum
      let former = isKept ? nil : state.storage
      let hadIndex = state.index.cost > 0
      state.node = node
      state.header = header
      state.start = nil
      (state.attributes, state.extended) = (attributes, extended)
      state.isDetached = false
      state.verifiedEnd = 0
      state.checksum = 0
      state.index.removeAll()
      state.failure = nil
      if !isKept { reset(&state) }
      state.continuesFormer = served.isServed(inode, byOtherThan: generation)
      state.isRecorded = false
      defer { state.reloadDeadline = nil }
      return (state.reloadDeadline != nil, !state.isComplete && (former != nil || hadIndex), former)
    }
    if isEmpty { cache.account(self, bytes: 0, isFile: false) }
    withExtendedLifetime(former) {}
    if wasWaiting { decodeAsynchronously() }
  }

  /// Records that the present archive lacks the entry; readers continue with the former file.
  func detach() {
    state.withLock { $0.isDetached = true }
    endReloadWait()
    cache.remove(self)
  }

  /// Accounts for a detached content that is still in use.
  func accountDetached() {
    let taken = state.withLock { state in
      state.storage.map { (Self.cost(of: state, written: state.available.end), $0.isFile) }
    }
    if let (bytes, isFile) = taken { cache.account(self, bytes: bytes, isFile: isFile) }
  }

  /// Reads without waiting for a decoder.
  /// - Returns: the byte count, less than requested at the end only; nil if it would block: see
  ///   `whenReadable`.
  /// - Throws: EACCES for an encrypted entry; EIO for a damaged one; EOPNOTSUPP for an unknown method;
  ///   ESTALE if the content is lost.
  func readNonBlocking(
    into buffer: UnsafeMutableRawBufferPointer, at offset: Int64, isCounted: Bool = true
  ) throws(Errno) -> Int? {
    let node = state.withLock { $0.node }
    if node.flags.contains(.isEncrypted), cache.passwords.isEmpty { throw .permissionDenied }
    if size == 0 { try checkEmpty(node) }
    guard let range = range(at: offset, count: buffer.count) else { return 0 }
    try Self.checkSizes(of: node)
    let part = UnsafeMutableRawBufferPointer(rebasing: buffer[..<range.count])
    if node.isStored, try readStored(range, into: part) { return range.count }
    if try readDecoded(range, into: part) {
      if isCounted { cache.count(isHit: true) }
      return range.count
    }
    if isCounted { cache.count(isHit: false) }
    if range.upperBound <= Self.smallSize, !node.isSequential, claimFirstDecoding() {
      decodeSynchronously(to: size <= Self.smallSize ? size : range.upperBound)
      if try readDecoded(range, into: part) { return range.count }
    }
    return nil
  }

  /// Like `readNonBlocking`, but blocks while the range is decoded.
  func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(Errno) -> Int {
    if let count = try readNonBlocking(into: buffer, at: offset) { return count }
    // Valid in other threads, since the reader blocks.
    nonisolated(unsafe) let buffer = buffer
    while true {
      let result = BlockingQueue<Result<Int?, Errno>>()
      whenReadable(at: offset, count: buffer.count) { [self] failure in
        // At once, since the range may be evicted soon.
        if let failure { return _ = result.enqueue(.failure(failure)) }
        do throws(Errno) {
          result.enqueue(.success(try readNonBlocking(into: buffer, at: offset, isCounted: false)))
        } catch { result.enqueue(.failure(error)) }
      }
      if let count = try result.dequeue()?.get() { return count }
    }
  }

  /// Calls the function once the range is readable or failed: from another thread, or at once.
  func whenReadable(at offset: Int64, count: Int, _ completion: @escaping @Sendable (Errno?) -> Void) {
    guard let range = range(at: offset, count: count) else { return completion(nil) }
    let (isReady, failure) = state.withLock { state -> (Bool, Errno?) in
      if let failure = state.failure { return (true, failure) }
      if state.available.contains(range) { return (true, nil) }
      state.waiters.append(Waiter(range: range, completion: completion))
      state.target = max(state.target, range.upperBound + readAhead)
      return (false, nil)
    }
    if isReady { return completion(failure) }
    if claimDecoding() { decodeAsynchronously() }
  }

  func range(at offset: Int64, count: Int) -> Range<UInt64>? {
    guard offset >= 0, UInt64(offset) < size, count > 0 else { return nil }
    return UInt64(offset)..<min(size, UInt64(offset) + UInt64(count))
  }

  /// Rejects sizes that no valid archive has.
  static func checkSizes(of node: ArchiveNode) throws(Errno) {
    let size = node.size
    if node.flags.contains(.isOverlapping) { throw .ioError }
    let isPossible =
      node.isStored
      ? node.compressedSize == size
        // The worst case of all methods is slightly more than the content.
      : node.compressedSize / 2 <= size.addingReportingOverflow(64 << 10).partialValue
    if !isPossible || size >= UInt64(Int64.max) { throw .ioError }
  }

  /// Verifies an entry of size 0, which may have compressed bytes nevertheless.
  func checkEmpty(_ node: ArchiveNode) throws(Errno) {
    if node.crc != 0 { throw .ioError }
    try Self.checkSizes(of: node)
    // The usual encodings of no bytes.
    if node.isStored || (node.method == 8 && node.compressedSize == 2) { return }
    let entry = try state.withLock { state throws(Errno) in try Self.compressedEntry(&state) }
    let decoder = try EntryDecoder.make(entry, passwords: cache.passwords)
    _ = try withUnsafeTemporaryBytes(1) { byte throws(Errno) in try decoder.read(into: byte) }
  }
}
