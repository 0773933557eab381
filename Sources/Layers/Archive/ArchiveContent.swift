import Glibc
import Posix

/// Where an archive has an entry.
struct ArchivePlace: Sendable {
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
  private let cache: ContentPool
  private let doubts: ContentDoubts
  private let state: Locked<State>
  /// The cache's.
  var link = ContentLink()

  /// Bytes that are unpacked at a time.
  static let chunkSize = 256 << 10
  /// Entries up to this size are unpacked at once, by who reads them: that takes about a millisecond.
  private static let smallSize: UInt64 = 256 << 10
  /// How far is unpacked beyond what was asked for.
  private static let ahead: UInt64 = 4 << 20
  /// Stored entries up to this size are compared with their checksum before the first byte is handed out;
  /// larger ones as they are read from the beginning, a little out of order at most.
  private static let checkedAtOnce: UInt64 = 1 << 20
  /// Bytes that a content takes beside itself.
  private static let overhead = 512

  private struct State {
    /// As the archive of now has it.
    var node: ArchiveNode
    var place: ArchivePlace
    /// Offset of the first packed byte, once the entry's header was read.
    var start: UInt64?
    var attributes: Attributes
    /// Whether the archive that the layer is by now has not got it.
    var isAbandoned = false
    /// Whether something was handed out that was not compared with the checksum since.
    var isDoubtful = false
    /// Read in place: how far it is known to be right.
    var checked: UInt64 = 0
    var checksum = CRC32()
    var failure: Errno?
    /// Unpacked: where, and which part of it can be read.
    var storage: ContentStorage?
    var present: Range<UInt64> = 0..<0
    var inflater: Inflater?
    /// What the inflater reads.
    var unpacked: ArchivePlace?
    var isComplete = false
    /// Whether a thread is about to unpack it.
    var isRunning = false
    /// Whether the file was written over since the inflater began.
    var isUncertain = false
    /// How far it is to be unpacked, whether or not somebody waits.
    var wanted: UInt64 = 0
    var waiters: [Waiter] = []
    /// Until when it waits for the archive to be read anew, on the monotonic clock; nil if it does not.
    var parkedUntil: Int64?
  }

  /// Called once a range can be read, or with the reason why it never can.
  typealias Arrival = @Sendable (Errno?) -> Void
  private struct Waiter {
    let range: Range<UInt64>
    let arrived: Arrival
  }

  init(
    _ node: ArchiveNode, at place: ArchivePlace, _ attributes: Attributes, _ cache: ContentPool,
    _ doubts: ContentDoubts
  ) {
    inode = node.inode
    size = node.size
    self.cache = cache
    self.doubts = doubts
    state = Locked(State(node: node, place: place, attributes: attributes))
  }

  /// The file's attributes, as the archive has them now.
  var attributes: Attributes { state.withLock { $0.attributes } }

  /// Goes on with a new archive, which has the same content.
  /// - Returns: whether something was handed out that nobody found right: it may be another archive's.
  func move(to place: ArchivePlace, _ node: ArchiveNode, _ attributes: Attributes) -> Bool {
    let (wasDoubtful, wasParked, former) = state.withLock { state -> (Bool, Bool, AnyObject?) in
      let former = state.isComplete ? nil : state.storage
      state.node = node
      state.place = place
      state.start = nil
      state.attributes = attributes
      state.isAbandoned = false
      state.checked = 0
      state.checksum = CRC32()
      state.failure = nil
      // What was found right is the same as the new archive has.
      if !state.isComplete { Self.reset(&state) }
      state.isDoubtful = false
      defer { state.parkedUntil = nil }
      return (doubts.remove(inode), state.parkedUntil != nil, former)
    }
    if former != nil { cache.account(self, bytes: 0, isFile: false) }
    if wasParked { unpackElsewhere() }
    return wasDoubtful
  }

  /// Notes that the archive of now has not got it: what is left is the former archive's file.
  func abandon() {
    state.withLock { $0.isAbandoned = true }
    endParking()
    cache.release(self)
  }

  /// Notes that somebody reads it still, though it was abandoned.
  func keep() {
    let taken = state.withLock { state in
      state.storage.map { (Self.weight(of: state, written: state.present.upperBound), $0.isFile) }
    }
    if let (bytes, isFile) = taken { cache.account(self, bytes: bytes, isFile: isFile) }
  }

  // MARK: - Reading

  /// Reads if that needs no waiting.
  /// - Returns: the count of bytes, fewer than asked for at the end only; nil where something is to be unpacked
  ///   first: see `whenReadable`.
  /// - Throws: EACCES for an encrypted entry; EIO for a damaged one; EOPNOTSUPP for an unknown method; ESTALE
  ///   where the content is lost.
  func readNow(
    into buffer: UnsafeMutableRawBufferPointer, at offset: Int64, isCounted: Bool = true
  ) throws(Errno) -> Int? {
    let node = state.withLock { $0.node }
    if node.flags.contains(.isEncrypted) { throw .accessDenied }
    if size == 0 { try checkEmpty(node) }
    guard let range = range(at: offset, count: buffer.count) else { return 0 }
    try Self.checkSizes(of: node)
    let part = UnsafeMutableRawBufferPointer(rebasing: buffer[..<range.count])
    if node.method == 0, try readInPlace(range, into: part) { return range.count }
    if try readUnpacked(range, into: part) {
      if isCounted { cache.count(isHit: true) }
      return range.count
    }
    if isCounted { cache.count(isHit: false) }
    if isSmall, begin() {
      unpackHere()
      if try readUnpacked(range, into: part) { return range.count }
    }
    return nil
  }

  /// Reads, and waits if need be.
  /// - Throws: as `readNow`.
  func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(Errno) -> Int {
    if let count = try readNow(into: buffer, at: offset) { return count }
    let wanted = WantedBytes(buffer: buffer)
    while true {
      let arrival = WaitingLine<Result<Int?, Errno>>()
      whenReadable(at: offset, count: buffer.count) { [self] failure in
        // Here and now: what is there may have to make room again.
        if let failure { return _ = arrival.add(.failure(failure)) }
        do throws(Errno) {
          arrival.add(.success(try readNow(into: wanted.buffer, at: offset, isCounted: false)))
        } catch { arrival.add(.failure(error)) }
      }
      if let count = try arrival.take()?.get() { return count }
    }
  }

  /// A reader's buffer, which stays while he waits.
  private struct WantedBytes: @unchecked Sendable {
    let buffer: UnsafeMutableRawBufferPointer
  }

  /// Has a function called once a part can be read: soon, by another thread, or at once.
  func whenReadable(at offset: Int64, count: Int, _ arrived: @escaping Arrival) {
    guard let range = range(at: offset, count: count) else { return arrived(nil) }
    let (isThere, failure) = state.withLock { state -> (Bool, Errno?) in
      if let failure = state.failure { return (true, failure) }
      if state.present.contains(range) { return (true, nil) }
      state.waiters.append(Waiter(range: range, arrived: arrived))
      state.wanted = max(state.wanted, range.upperBound + Self.ahead)
      return (false, nil)
    }
    if isThere { return arrived(failure) }
    if begin() { unpackElsewhere() }
  }

  private func range(at offset: Int64, count: Int) -> Range<UInt64>? {
    guard offset >= 0, UInt64(offset) < size, count > 0 else { return nil }
    return UInt64(offset)..<min(size, UInt64(offset) + UInt64(count))
  }

  /// What no honest archive says.
  private static func checkSizes(of node: ArchiveNode) throws(Errno) {
    let size = node.size
    if node.flags.contains(.isOverlapping) { throw .io }
    let isPossible =
      node.method == 0
      ? node.compressedSize == size
        // The worst case of every method is a little more than the content itself.
      : node.compressedSize / 2 <= size.addingReportingOverflow(64 << 10).partialValue
    if !isPossible || size > UInt64(Int64.max) { throw .io }
  }

  /// An entry of no bytes may have some nevertheless.
  private func checkEmpty(_ node: ArchiveNode) throws(Errno) {
    if node.crc != 0 { throw .io }
    try Self.checkSizes(of: node)
    // The usual way to pack nothing.
    if node.method == 0 || (node.method == 8 && node.compressedSize == 2) { return }
    let (source, start) = try state.withLock { state throws(Errno) in
      (state.place.source, try Self.start(&state))
    }
    let inflater = try Inflater(
      PackedEntry(
        source: source, start: start, compressedSize: node.compressedSize, size: 0, crc: 0,
        method: node.method, flags: node.flags.contains(.hasEndMark) ? 2 : 0))
    _ = try withUnsafeTemporaryBytes(1) { byte throws(Errno) in try inflater.read(into: byte) }
  }

  private var isSmall: Bool { size <= Self.smallSize }

  // MARK: - In place

  /// - Returns: false where the file was written over, so that its bytes have to be checked as a whole first.
  private func readInPlace(
    _ range: Range<UInt64>, into buffer: UnsafeMutableRawBufferPointer
  ) throws(Errno) -> Bool {
    let place = state.withLock { $0.place }
    do throws(Errno) {
      let (start, isCopied) = try state.withLock { state throws(Errno) in
        if let failure = state.failure { throw failure }
        return (try Self.start(&state), state.storage != nil)
      }
      if isCopied { return false }
      try place.source.read(into: buffer, at: start + range.lowerBound)
      guard place.source.isUnchanged else { return false }
      return try state.withLock { state throws(Errno) in
        if state.place.source !== place.source { return false }
        try check(&state, start, upTo: range, UnsafeRawBufferPointer(buffer))
        if let failure = state.failure { throw failure }
        if state.checked < size { doubt(&state) }
        return true
      }
    } catch {
      if !place.source.isUnchanged { return false }
      throw error
    }
  }

  /// Takes what was read into the checksum, with what lies between.
  private func check(
    _ state: inout State, _ start: UInt64, upTo range: Range<UInt64>, _ bytes: UnsafeRawBufferPointer
  ) throws(Errno) {
    if state.checked == size || range.lowerBound > state.checked + Self.checkedAtOnce { return }
    let goal = size <= Self.checkedAtOnce ? size : range.upperBound
    while state.checked < goal {
      if range.contains(state.checked) {
        state.checksum.add(UnsafeRawBufferPointer(rebasing: bytes[Int(state.checked - range.lowerBound)...]))
        state.checked = range.upperBound
        continue
      }
      let end = state.checked < range.lowerBound ? min(goal, range.lowerBound) : goal
      let count = Int(min(UInt64(128 << 10), end - state.checked))
      try withUnsafeTemporaryBytes(count) { buffer throws(Errno) in
        try state.place.source.read(into: buffer, at: start + state.checked)
        state.checksum.add(UnsafeRawBufferPointer(buffer))
      }
      state.checked += UInt64(count)
    }
    guard state.checked == size, state.place.source.isUnchanged else { return }
    if state.checksum.value == state.node.crc { trust(&state) } else { state.failure = .io }
  }

  /// Notes that something is handed out that may be wrong: the kernel keeps it.
  private func doubt(_ state: inout State) {
    if state.isDoubtful { return }
    state.isDoubtful = true
    doubts.insert(inode)
  }

  /// Notes that what was handed out is right.
  private func trust(_ state: inout State) {
    if !state.isDoubtful { return }
    state.isDoubtful = false
    _ = doubts.remove(inode)
  }

  /// The offset of the first packed byte: the entry's own header tells.
  /// - Throws: EIO where there is no header, or the bytes would not all be there; EACCES for an encrypted one.
  private static func start(_ state: inout State) throws(Errno) -> UInt64 {
    if let start = state.start { return start }
    let place = state.place
    guard place.header < place.end, place.end - place.header >= 30 else { throw .io }
    let (length, flags) = try withUnsafeTemporaryBytes(30) { header throws(Errno) -> (UInt64, UInt16) in
      try place.source.read(into: header, at: place.header)
      let header = UnsafeRawBufferPointer(header)
      guard header.number(at: 0, as: UInt32.self) == 0x0403_4B50 else { throw .io }
      let name = header.number(at: 26, as: UInt16.self)
      return (
        30 + UInt64(name) + UInt64(header.number(at: 28, as: UInt16.self)),
        header.number(at: 6, as: UInt16.self)
      )
    }
    if flags & 1 != 0 { throw .accessDenied }
    let start = place.header + length
    guard start <= place.end, place.end - start >= state.node.compressedSize else { throw .io }
    state.start = start
    return start
  }

  // MARK: - Unpacked

  private func readUnpacked(
    _ range: Range<UInt64>, into buffer: UnsafeMutableRawBufferPointer
  ) throws(Errno) -> Bool {
    let (storage, needsMore) = try state.withLock { state throws(Errno) -> (ContentStorage?, Bool) in
      if let failure = state.failure { throw failure }
      guard let storage = state.storage, state.present.contains(range) else { return (nil, false) }
      let isNear = range.upperBound + Self.ahead / 2 > state.present.upperBound
      let needsMore = isNear && !state.isComplete && !state.isRunning
      if needsMore {
        state.isRunning = true
        state.wanted = max(state.wanted, range.upperBound + Self.ahead)
      }
      return (storage, needsMore)
    }
    guard let storage else { return false }
    if needsMore { unpackElsewhere() }
    try storage.read(into: buffer, at: range.lowerBound)
    cache.touch(self)
    return state.withLock { state in
      // What was being read may have been let go meanwhile, or be a former archive's.
      guard state.storage === storage, state.present.contains(range) else { return false }
      if !state.isComplete { doubt(&state) }
      return true
    }
  }

  /// Takes the right to unpack.
  /// - Returns: false if another has it.
  private func begin() -> Bool {
    state.withLock { state in
      defer { state.isRunning = true }
      return !state.isRunning
    }
  }

  private func unpackElsewhere() {
    if !cache.enqueue(self) { unpackHere() }
  }

  private func unpackHere() {
    state.withLock { $0.wanted = max($0.wanted, isSmall ? size : 0) }
    let buffer = UnsafeMutableRawBufferPointer.allocate(
      byteCount: min(Self.chunkSize, Int(clamping: size) + 1), alignment: 16)
    defer { buffer.deallocate() }
    while proceed(buffer, steps: 16) {}
  }

  /// Unpacks on, for the thread that has the right to.
  /// - Returns: false when there is nothing more to do for now: then the right is given back, or it is parked.
  func proceed(_ buffer: UnsafeMutableRawBufferPointer, steps: Int) -> Bool {
    for _ in 0..<steps {
      let (goesOn, arrived, failure) = state.withLock { next(&$0) }
      for waiter in arrived { waiter.arrived(failure) }
      guard goesOn else { return false }
      if !step(buffer) { return false }
    }
    return true
  }

  /// Looks what is to be done next.
  /// - Returns: whether something is; and who has waited for long enough.
  private func next(_ state: inout State) -> (Bool, [Waiter], Errno?) {
    let failure = state.failure
    let (present, hasFailed) = (state.present, failure != nil)
    let arrived = state.waiters.filter { hasFailed || present.contains($0.range) }
    if !arrived.isEmpty { state.waiters.removeAll { hasFailed || present.contains($0.range) } }
    if failure?.isPassing == true { state.failure = nil }
    let isIdle =
      state.waiters.isEmpty && (state.isComplete || state.present.upperBound >= min(size, state.wanted))
    if hasFailed || isIdle {
      state.isRunning = !state.waiters.isEmpty
      return (state.isRunning, arrived, failure)
    }
    // All who wait want something that was let go.
    if !state.waiters.isEmpty, state.waiters.allSatisfy({ $0.range.lowerBound < present.lowerBound }) {
      Self.reset(&state)
    }
    return (true, arrived, nil)
  }

  private static func reset(_ state: inout State) {
    state.storage = nil
    state.inflater = nil
    state.unpacked = nil
    state.present = 0..<0
    state.isComplete = false
    state.isUncertain = false
    state.wanted = state.waiters.reduce(0) { max($0, $1.range.upperBound + ahead) }
  }

  /// - Returns: false where it is to wait for the archive to be read anew.
  private func step(_ buffer: UnsafeMutableRawBufferPointer) -> Bool {
    let source = state.withLock { ($0.unpacked ?? $0.place).source }
    do throws(Errno) { try unpack(buffer, from: source) } catch { return fail(error, source) }
    return true
  }

  private func unpack(
    _ buffer: UnsafeMutableRawBufferPointer, from source: ArchiveSource
  ) throws(Errno) {
    guard let (inflater, storage) = try prepare(source) else { return }
    // Who wants the first bytes gets them soon.
    let most = inflater.position < UInt64(Self.chunkSize) ? Self.chunkSize / 4 : Self.chunkSize
    let wanted = min(buffer.count, most, Int(clamping: size - inflater.position) + 1)
    let count = try inflater.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<wanted]))
    let end = inflater.position
    if count > 0 {
      try storage.write(UnsafeRawBufferPointer(rebasing: buffer[..<count]), at: end - UInt64(count))
    }
    let isUnchanged = source.isUnchanged
    let (bytes, dropped) = state.withLock { state -> (Int, Range<UInt64>) in
      // Another archive has come.
      guard state.inflater === inflater, state.storage === storage else { return (0, 0..<0) }
      if !isUnchanged { state.isUncertain = true }
      if count == 0 {
        complete(&state)
      } else if !state.isUncertain, end < size {
        state.present = state.present.lowerBound..<end
      }
      let dropped = narrow(&state, storage)
      return (Self.weight(of: state, written: end), dropped)
    }
    if !dropped.isEmpty { storage.drop(dropped) }
    cache.account(self, bytes: bytes, isFile: storage.isFile)
  }

  private func complete(_ state: inout State) {
    state.isComplete = true
    state.inflater = nil
    state.unpacked = nil
    state.present = state.present.lowerBound..<size
    // What was handed out before the file was written over was not compared.
    if !state.isUncertain { trust(&state) }
  }

  private static func weight(of state: State, written: UInt64) -> Int {
    Int(clamping: written - state.present.lowerBound) + overhead
      + (state.inflater == nil ? 0 : Inflater.weight)
  }

  /// Bytes of one entry that are kept at a time.
  private var mostAtOnce: UInt64 { UInt64(max(cache.budget, 16 << 20)) }

  /// An entry that is larger than the whole budget is kept in part, where somebody reads.
  private func narrow(_ state: inout State, _ storage: ContentStorage) -> Range<UInt64> {
    let limit = mostAtOnce
    guard storage.isFile, state.present.count > limit else { return 0..<0 }
    var lower = state.present.upperBound - limit / 2
    for waiter in state.waiters where waiter.range.lowerBound >= state.present.lowerBound {
      lower = min(lower, waiter.range.lowerBound)
    }
    // By whole pages, since only those can be given back.
    lower &= ~0xFFFF
    guard lower > state.present.lowerBound else { return 0..<0 }
    defer { state.present = lower..<state.present.upperBound }
    return state.present.lowerBound..<lower
  }

  /// - Returns: nil where another archive has come.
  private func prepare(_ source: ArchiveSource) throws(Errno) -> (Inflater, ContentStorage)? {
    let (inflater, storage) = state.withLock { ($0.inflater, $0.storage) }
    if let inflater, let storage { return (inflater, storage) }
    let begun = try state.withLock { state throws(Errno) -> (ArchivePlace, UInt64, ArchiveNode)? in
      guard state.place.source === source else { return nil }
      let wanted = state.wanted
      Self.reset(&state)
      state.wanted = max(state.wanted, wanted)
      return (state.place, try Self.start(&state), state.node)
    }
    guard let (place, start, node) = begun else { return nil }
    let flags: UInt16 = node.flags.contains(.hasEndMark) ? 2 : 0
    let fresh = try Inflater(
      PackedEntry(
        source: source, start: start, compressedSize: node.compressedSize, size: size, crc: node.crc,
        method: node.method, flags: flags))
    let room = try ContentStorage(size: size, mostAtOnce: mostAtOnce, mayUseFile: cache.mayUseFile)
    return state.withLock { state in
      guard state.place.source === source else { return nil }
      (state.inflater, state.storage, state.unpacked) = (fresh, room, place)
      return (fresh, room)
    }
  }

  /// Begins anew if the archive was replaced meanwhile; waits for that if its file was written over; and else
  /// notes the failure.
  /// - Returns: whether to go on.
  private func fail(_ error: Errno, _ source: ArchiveSource) -> Bool {
    let isParked = state.withLock { state -> Bool in
      if source !== (state.unpacked ?? state.place).source { return false }
      Self.reset(&state)
      if source !== state.place.source { return false }
      if error.isPassing || source.isUnchanged {
        state.failure = error
        return false
      }
      let deadline = source.deadline
      if state.isAbandoned || deadline <= monotonicNanoseconds() {
        state.failure = .stale
        return false
      }
      state.parkedUntil = deadline
      return true
    }
    cache.account(self, bytes: 0, isFile: false)
    if isParked { cache.park(self) }
    return !isParked
  }

  /// Tells those who wait for an archive to be read anew that it is lost.
  /// - Parameter now: leaves it if its time has not come by then, on the monotonic clock.
  /// - Returns: whether it does not wait any more.
  @discardableResult
  func endParking(by now: Int64 = .max) -> Bool {
    let outcome = state.withLock { state -> (Bool, [Waiter], Errno?)? in
      guard let deadline = state.parkedUntil else { return (false, [], nil) }
      if deadline > now { return nil }
      state.parkedUntil = nil
      state.failure = .stale
      return next(&state)
    }
    guard let (_, arrived, failure) = outcome else { return false }
    for waiter in arrived { waiter.arrived(failure) }
    return true
  }

  /// Gives the room back.
  /// - Returns: nil if it did; else what is still taken, since it is being unpacked.
  func drop() -> (bytes: Int, isFile: Bool)? {
    let (former, taken) = state.withLock { state -> (AnyObject?, (bytes: Int, isFile: Bool)?) in
      guard let storage = state.storage else { return (nil, nil) }
      if state.isRunning {
        let written = max(state.inflater?.position ?? 0, state.present.upperBound)
        return (nil, (Self.weight(of: state, written: written), storage.isFile))
      }
      Self.reset(&state)
      return (storage, nil)
    }
    withExtendedLifetime(former) {}
    return taken
  }
}

extension Errno {
  /// Whether it says nothing of the content itself.
  fileprivate var isPassing: Bool {
    self == .noMemory || self == .noSpace || self == .tooManyOpenFiles || self == .stale
  }
}
