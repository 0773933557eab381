import Posix
import Synchronization

/// One state of an object on a server. Its bytes are read as those of a file that does not change: each range is asked for
/// with the state's validator, and an answer of another state is refused.
public final class RemoteObject: Sendable {
  let file: BlockFile
  let server: ObjectServer
  private let folder: CacheFolder?
  private let changed = Atomic(false)
  private let state = Locked(State())
  /// Called when the server turns out to have another state.
  private let whenChanged: @Sendable () -> Void

  /// Blocks in memory.
  private static let mostBlocks = 32
  /// The most blocks that are asked for at once, and the milliseconds that the last answer may have taken to ask for more.
  private static let longestRun = 8
  private static let quickAnswer: CInt = 400
  /// The bytes that are written between two looks at the size of the cache.
  private static let trimInterval: UInt64 = 16 << 20
  /// The bytes that are kept of an object without a cache folder.
  private static let mostWithoutFolder: UInt64 = 64 << 20

  private struct State {
    var recent: [(block: Int, bytes: [UInt8])] = []
    var flights: [Flight] = []
    /// Where the last run ended, and how long it was.
    var runEnd = 0
    var runLength = 0
    /// The blocks that were written, in order.
    var written: [Int] = []
    var untrimmed: UInt64 = trimInterval
  }

  /// Blocks that a thread fetches, while others wait for them.
  private struct Flight {
    let id: UInt64
    let blocks: Range<Int>
    var waiters: [BlockingQueue<RemoteFault?>] = []
  }

  init(
    _ file: BlockFile, of server: ObjectServer, _ folder: CacheFolder?,
    whenChanged: @escaping @Sendable () -> Void
  ) {
    (self.file, self.server, self.folder, self.whenChanged) = (file, server, folder, whenChanged)
  }

  /// Bytes.
  public var size: UInt64 { file.header.size }
  /// `Last-Modified`, or when it was first read.
  public var modified: TimeSpec { TimeSpec(nanosecondsSinceEpoch: file.header.modified) }
  /// Tells states of objects apart.
  public var identity: UInt64 {
    let validator = file.header.validator
    return mixedHash(
      file.header.url.0, size, BlockChecksum.of(validator.entityTag + [0] + validator.modified, seed: 1))
  }
  /// Whether the server is known to have another state by now.
  public var hasChanged: Bool { changed.load(ordering: .relaxed) }
  /// Whether it was downloaded as a whole, since the server has no ranges.
  public var isWhole: Bool { file.header.isWhole }
  /// The file with its blocks, from which a successor of this process continues (`RemoteFile.restore`).
  public var descriptor: CInt { file.descriptor.rawValue }

  func setChanged() {
    if !changed.exchange(true, ordering: .relaxed) { whenChanged() }
  }

  // MARK: - Reading

  /// Fills a buffer.
  /// - Throws: EIO if the object ends before, or has changed on the server; ETIMEDOUT if the server does not answer in time;
  ///   EREMOTEIO if its answer is wrong.
  public func read(into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64) throws(Errno) {
    guard offset <= size, UInt64(buffer.count) <= size - offset else { throw .ioError }
    var position = offset
    let end = offset + UInt64(buffer.count)
    while position < end {
      let number = Int(position / UInt64(BlockFile.blockSize))
      let range = file.range(of: number)
      let bytes: [UInt8]
      do throws(RemoteFault) { bytes = try block(number, upTo: end) } catch { throw error.errno }
      let part = Int(position - range.lowerBound)..<Int(min(end, range.upperBound) - range.lowerBound)
      let target = UnsafeMutableRawBufferPointer(rebasing: buffer[Int(position - offset)...])
      bytes.withUnsafeBytes { target.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[part])) }
      position += UInt64(part.count)
    }
  }

  /// Has what a range lacks fetched now, so that reading it soon does not wait.
  public func prepare(_ range: Range<UInt64>) {
    let end = min(range.upperBound, size)
    var position = min(range.lowerBound, end)
    while position < end {
      let number = Int(position / UInt64(BlockFile.blockSize))
      guard (try? block(number, upTo: end)) != nil else { return }
      position = file.range(of: number).upperBound
    }
  }

  private func block(_ number: Int, upTo end: UInt64) throws(RemoteFault) -> [UInt8] {
    // Each round waits for another fetch, or makes one; a block that was fetched can be gone from the cache again.
    for _ in 0..<16 {
      if let bytes = recent(number) { return bytes }
      if let bytes = file.read(number) {
        keep(bytes, number)
        return bytes
      }
      if hasChanged { throw .changed }
      switch takeOff(number, upTo: end) {
      case .wait(let answer):
        if let fault = answer.dequeue() ?? nil { throw fault }
      case .fetch(let id, let blocks):
        let fault = fetch(blocks)
        land(id, fault)
        if let fault { throw fault }
      }
    }
    throw .local(.ioError)
  }

  private func recent(_ number: Int) -> [UInt8]? {
    state.withLock { state in
      guard let index = state.recent.lastIndex(where: { $0.block == number }) else { return nil }
      let found = state.recent.remove(at: index)
      state.recent.append(found)
      return found.bytes
    }
  }

  private func keep(_ bytes: [UInt8], _ number: Int) {
    state.withLock { state in
      state.recent.removeAll { $0.block == number }
      if state.recent.count >= Self.mostBlocks { state.recent.removeFirst() }
      state.recent.append((number, bytes))
    }
  }

  // MARK: - Fetching

  private enum Role {
    case wait(BlockingQueue<RemoteFault?>)
    case fetch(UInt64, Range<Int>)
  }

  /// Waits for the thread that fetches the block, or claims it, with those that follow.
  private func takeOff(_ number: Int, upTo end: UInt64) -> Role {
    let wanted = Int((end + UInt64(BlockFile.blockSize) - 1) / UInt64(BlockFile.blockSize))
    return state.withLock { state in
      if let index = state.flights.firstIndex(where: { $0.blocks.contains(number) }) {
        let answer = BlockingQueue<RemoteFault?>()
        state.flights[index].waiters.append(answer)
        return .wait(answer)
      }
      let isInOrder = number == state.runEnd && number > 0
      let length = max(isInOrder ? 2 * state.runLength : 1, wanted - number)
      var last = number + 1
      let most = min(file.blockCount, number + min(length, Self.longestRun))
      while last < most, !file.contains(last),
        !state.flights.contains(where: { $0.blocks.contains(last) })
      {
        last += 1
      }
      let id = UInt64.random(in: 0 ... .max)
      state.flights.append(Flight(id: id, blocks: number..<last))
      return .fetch(id, number..<last)
    }
  }

  private func land(_ id: UInt64, _ fault: RemoteFault?) {
    let waiters = state.withLock { state -> [BlockingQueue<RemoteFault?>] in
      guard let index = state.flights.firstIndex(where: { $0.id == id }) else { return [] }
      return state.flights.remove(at: index).waiters
    }
    for waiter in waiters { waiter.enqueue(fault) }
  }

  private func fetch(_ blocks: Range<Int>) -> RemoteFault? {
    let begun = TimeSpec.monotonic
    do throws(RemoteFault) {
      if isWhole { throw .local(.ioError) }
      let range =
        file.range(of: blocks.lowerBound).lowerBound..<file.range(of: blocks.upperBound - 1).upperBound
      let bytes = try server.read(range, of: file.header)
      add(bytes, at: range.lowerBound)
    } catch {
      if error == .changed { setChanged() }
      return error
    }
    let took = TimeSpec.monotonic.milliseconds(since: begun)
    state.withLock { state in
      state.runEnd = blocks.upperBound
      // A slow line must not keep a reader waiting for what it may not need.
      state.runLength = took < Self.quickAnswer ? blocks.count : max(1, blocks.count / 4)
    }
    return nil
  }

  /// Adds the whole blocks among bytes of this state.
  func add(_ bytes: [UInt8], at offset: UInt64) {
    let size = UInt64(BlockFile.blockSize)
    var number = Int((offset + size - 1) / size)
    let end = offset + UInt64(bytes.count)
    while number < file.blockCount, file.range(of: number).upperBound <= end {
      let range = file.range(of: number)
      let block = Array(bytes[Int(range.lowerBound - offset)..<Int(range.upperBound - offset)])
      keep(block, number)
      // A full disk makes it slower only.
      if (try? block.withBytes({ bytes throws(Errno) in try file.write(bytes, number) })) != nil {
        state.withLock { $0.written.append(number) }
      }
      number += 1
    }
    trim(UInt64(bytes.count))
  }

  private func trim(_ added: UInt64) {
    let isDue = state.withLock { state in
      state.untrimmed += added
      if state.untrimmed < Self.trimInterval { return false }
      state.untrimmed = 0
      return true
    }
    if !isDue || isWhole { return }
    let used = file.usedBytes
    let excess = folder?.trim() ?? (used > Self.mostWithoutFolder ? used - Self.mostWithoutFolder : 0)
    if excess == 0 { return }
    let removed = state.withLock { state in
      let count = min(state.written.count, Int(clamping: excess / UInt64(BlockFile.blockSize) + 1))
      defer { state.written.removeFirst(count) }
      return Array(state.written[..<count])
    }
    for number in removed { file.remove(number) }
  }
}
