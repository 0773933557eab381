import Glibc
import Posix

/// Where an archive has an entry.
struct LocalHeader: Sendable {
  let source: ArchiveSource
  /// Offset of the entry's own header in the file.
  let header: UInt64
  /// Offset at which the entries end.
  let end: UInt64
}

/// The content of an entry, for all who read it.
///
/// A stored entry is read where it is. Any other is unpacked from its beginning, as far as somebody reads and a
/// little further, into storage that the cache may take away again. What was not compared with the checksum yet
/// is handed out but for its last piece: who reads to the end of a damaged entry is told.
///
/// If the archive's file is written over, what it has is handed out only after all of it was unpacked and found
/// right.
final class ArchiveContent: @unchecked Sendable {
  /// Which file of the layer it is.
  let inode: UInt64
  /// Bytes.
  let size: UInt64
  let cache: ContentPool
  let unverified: UnverifiedEntries
  let state: Locked<State>
  /// Its slot in `ContentLRU`, which the pool's lock guards; 0 for none.
  var slot: UInt32 = 0

  /// Bytes that are unpacked at a time: few at first, then as many as there are, up to a chunk.
  static let firstStep = 16 << 10
  static let chunkSize = 256 << 10
  /// Entries up to this size are unpacked at once, by who reads them, and the beginning of larger ones: that
  /// takes about a millisecond.
  static let smallSize: UInt64 = 256 << 10
  /// How far is unpacked beyond what was asked for.
  static let readAhead: UInt64 = 4 << 20
  /// Stored entries up to this size are compared with their checksum before the first byte is handed out;
  /// larger ones as they are read from the beginning, a little out of order at most.
  static let verifiedAtOnce: UInt64 = 1 << 20
  /// Bytes that a content takes beside itself.
  static let overhead = 512

  struct State {
    /// As the archive of now has it.
    var node: ArchiveNode
    var header: LocalHeader
    /// Offset of the first packed byte, once the entry's header was read.
    var start: UInt64?
    var attributes: FileStatus
    /// Whether the archive that the layer is by now has not got it.
    var isDetached = false
    /// Whether something was handed out that was not compared with the checksum since.
    var isUnverified = false
    /// Read in place: how far it is known to be right.
    var verifiedEnd: UInt64 = 0
    var checksum: UInt32 = 0
    var failure: Errno?
    /// Unpacked: where, and which part of it can be read.
    var storage: ContentStorage?
    var available: Range<UInt64> = 0..<0
    var decoder: EntryDecoder?
    /// What the decoder reads.
    var decodedHeader: LocalHeader?
    var isComplete = false
    /// Whether a thread is about to unpack it.
    var isDecoding = false
    /// Whether the file was written over since the decoder began.
    var wasOverwritten = false
    /// How far it is to be unpacked, whether or not somebody waits.
    var target: UInt64 = 0
    var waiters: [Waiter] = []
    /// Until when it waits for the archive to be read anew, by `TimeSpec.monotonic`; nil if it does not.
    var reloadDeadline: TimeSpec?
  }

  /// Called once a range can be read, or with the reason why it never can.
  typealias Completion = @Sendable (Errno?) -> Void
  struct Waiter {
    let range: Range<UInt64>
    let completion: Completion
  }

  init(
    _ node: ArchiveNode, at header: LocalHeader, _ attributes: FileStatus, _ cache: ContentPool,
    _ unverified: UnverifiedEntries
  ) {
    inode = node.inode
    size = node.size
    self.cache = cache
    self.unverified = unverified
    state = Locked(State(node: node, header: header, attributes: attributes))
  }

  /// The file's attributes, as the archive has them now.
  var attributes: FileStatus { state.withLock { $0.attributes } }

  /// Goes on with a new archive, which has the same content.
  /// - Returns: whether something was handed out that nobody found right: it may be another archive's.
  func move(to header: LocalHeader, _ node: ArchiveNode, _ attributes: FileStatus) -> Bool {
    let (wasUnverified, wasWaiting, former) = state.withLock { state -> (Bool, Bool, AnyObject?) in
      let former = state.isComplete ? nil : state.storage
      state.node = node
      state.header = header
      state.start = nil
      state.attributes = attributes
      state.isDetached = false
      state.verifiedEnd = 0
      state.checksum = 0
      state.failure = nil
      // What was found right is the same as the new archive has.
      if !state.isComplete { Self.reset(&state) }
      state.isUnverified = false
      defer { state.reloadDeadline = nil }
      return (unverified.remove(inode), state.reloadDeadline != nil, former)
    }
    if former != nil { cache.account(self, bytes: 0, isFile: false) }
    if wasWaiting { decodeAsynchronously() }
    return wasUnverified
  }

  /// Notes that the archive of now has not got it: what is left is the former archive's file.
  func detach() {
    state.withLock { $0.isDetached = true }
    endReloadWait()
    cache.release(self)
  }

  /// Notes that somebody reads it still, though it was detached.
  func keep() {
    let taken = state.withLock { state in
      state.storage.map { (Self.cost(of: state, written: state.available.upperBound), $0.isFile) }
    }
    if let (bytes, isFile) = taken { cache.account(self, bytes: bytes, isFile: isFile) }
  }

  // MARK: - Reading

  /// Reads if that needs no waiting.
  /// - Returns: the count of bytes, fewer than asked for at the end only; nil where something is to be unpacked
  ///   first: see `whenReadable`.
  /// - Throws: EACCES for an encrypted entry; EIO for a damaged one; EOPNOTSUPP for an unknown method; ESTALE
  ///   where the content is lost.
  func readNonBlocking(
    into buffer: UnsafeMutableRawBufferPointer, at offset: Int64, isCounted: Bool = true
  ) throws(Errno) -> Int? {
    let node = state.withLock { $0.node }
    if node.flags.contains(.isEncrypted) { throw .permissionDenied }
    if size == 0 { try checkEmpty(node) }
    guard let range = range(at: offset, count: buffer.count) else { return 0 }
    try Self.checkSizes(of: node)
    let part = UnsafeMutableRawBufferPointer(rebasing: buffer[..<range.count])
    if node.method == 0, try readStored(range, into: part) { return range.count }
    if try readDecoded(range, into: part) {
      if isCounted { cache.count(isHit: true) }
      return range.count
    }
    if isCounted { cache.count(isHit: false) }
    if range.upperBound <= Self.smallSize, begin() {
      decodeSynchronously(to: isSmall ? size : range.upperBound)
      if try readDecoded(range, into: part) { return range.count }
    }
    return nil
  }

  /// Reads, and waits if need be.
  /// - Throws: as `readNonBlocking`.
  func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(Errno) -> Int {
    if let count = try readNonBlocking(into: buffer, at: offset) { return count }
    let wanted = WantedBytes(buffer: buffer)
    while true {
      let arrival = BlockingQueue<Result<Int?, Errno>>()
      whenReadable(at: offset, count: buffer.count) { [self] failure in
        // Here and now: what is there may have to make room again.
        if let failure { return _ = arrival.enqueue(.failure(failure)) }
        do throws(Errno) {
          arrival.enqueue(.success(try readNonBlocking(into: wanted.buffer, at: offset, isCounted: false)))
        } catch { arrival.enqueue(.failure(error)) }
      }
      if let count = try arrival.dequeue()?.get() { return count }
    }
  }

  /// A reader's buffer, which stays while he waits.
  struct WantedBytes: @unchecked Sendable {
    let buffer: UnsafeMutableRawBufferPointer
  }

  /// Has a function called once a part can be read: soon, by another thread, or at once.
  func whenReadable(at offset: Int64, count: Int, _ completion: @escaping Completion) {
    guard let range = range(at: offset, count: count) else { return completion(nil) }
    let (isThere, failure) = state.withLock { state -> (Bool, Errno?) in
      if let failure = state.failure { return (true, failure) }
      if state.available.contains(range) { return (true, nil) }
      state.waiters.append(Waiter(range: range, completion: completion))
      state.target = max(state.target, range.upperBound + Self.readAhead)
      return (false, nil)
    }
    if isThere { return completion(failure) }
    if begin() { decodeAsynchronously() }
  }

  func range(at offset: Int64, count: Int) -> Range<UInt64>? {
    guard offset >= 0, UInt64(offset) < size, count > 0 else { return nil }
    return UInt64(offset)..<min(size, UInt64(offset) + UInt64(count))
  }

  /// What no honest archive says.
  static func checkSizes(of node: ArchiveNode) throws(Errno) {
    let size = node.size
    if node.flags.contains(.isOverlapping) { throw .ioError }
    let isPossible =
      node.method == 0
      ? node.compressedSize == size
        // The worst case of every method is a little more than the content itself.
      : node.compressedSize / 2 <= size.addingReportingOverflow(64 << 10).partialValue
    if !isPossible || size >= UInt64(Int64.max) { throw .ioError }
  }

  /// An entry of no bytes may have some nevertheless.
  func checkEmpty(_ node: ArchiveNode) throws(Errno) {
    if node.crc != 0 { throw .ioError }
    try Self.checkSizes(of: node)
    // The usual way to pack nothing.
    if node.method == 0 || (node.method == 8 && node.compressedSize == 2) { return }
    let (source, start) = try state.withLock { state throws(Errno) in
      (state.header.source, try Self.start(&state))
    }
    let decoder = try EntryDecoder(PackedEntry(node, in: source, at: start))
    _ = try withUnsafeTemporaryBytes(1) { byte throws(Errno) in try decoder.read(into: byte) }
  }

  var isSmall: Bool { size <= Self.smallSize }
}
