import Containers
import CLibrary
import Posix
import RemoteFiles

/// The state of the cache.
public struct ContentCacheStatistics: Sendable, Hashable {
  /// The most bytes that it may use.
  public var budget = 0
  /// The bytes in use.
  public var bytes = 0
  /// The number of contents.
  public var contents = 0
  /// Reads without a wait.
  public var hits: UInt64 = 0
  /// Reads that waited for a decoder.
  public var misses: UInt64 = 0
}

/// The decoded contents of archives' entries, an LRU cache within a budget, and the threads that decode.
public final class ContentCache: Sendable {
  /// The default budget in bytes.
  public static let defaultBudget = 256 << 20

  let pool: ContentPool
  /// Where a successor finds the archives; nil if none is to come.
  public let registry: ArchiveRegistry?
  /// How archives on servers are read.
  let remote: RemoteSettings
  /// Whose their entries are.
  let owners: ArchiveOwners

  /// Creates a cache with a budget in bytes, for archives of which the passwords may open encrypted entries.
  public init(
    budget: Int = ContentCache.defaultBudget, passwords: [[UInt8]] = [], registry: ArchiveRegistry? = nil,
    remote: RemoteSettings = RemoteSettings(), owners: ArchiveOwners = .mounter
  ) {
    (self.registry, self.remote, self.owners) = (registry, remote, owners)
    pool = ContentPool(budget: budget, passwords: passwords)
  }

  // Breaks the cycle between the contents and the pool.
  deinit { pool.close() }

  /// Starts the decoding threads. Without them readers decode on their own threads.
  /// - Throws: EAGAIN if no thread can be created.
  public func start(threads count: Int) throws(Errno) { try pool.start(threads: count) }

  /// Stops the threads after they have emptied the queue.
  public func stop() { pool.stop() }

  /// Evicts all contents except those that are being decoded.
  public func evictAll() { pool.evictAll() }

  /// The present state.
  public var statistics: ContentCacheStatistics { pool.statistics }
}

/// The cache's shared state, to which the contents refer.
final class ContentPool: Sendable {
  let budget: Int
  let passwords: [[UInt8]]
  private let lru = Locked(ContentLRU())
  private let queue = BlockingQueue<ArchiveContent>()
  let reloadWaiters = ReloadWaiters()
  private let threads = Locked<[ThreadHandle]>([])
  private let hits = Counter()
  private let misses = Counter()
  /// Bytes that were decoded.
  let decoded = Counter()
  /// The most contents in files.
  private let mostFiles: Int

  init(budget: Int, passwords: [[UInt8]]) {
    self.budget = budget
    self.passwords = passwords
    var limit = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    mostFiles = min(1024, max(16, Int(clamping: limit.rlim_max) / 32))
  }

  func close() {
    let contents = lru.withLock { lru in
      lru.isClosed = true
      return lru.removeAll()
    }
    // Freed here, outside the lock.
    withExtendedLifetime(contents) {}
  }

  func start(threads count: Int) throws(Errno) {
    for _ in 0..<max(1, count) {
      let thread = ThreadHandle(try Thread(name: "decompression") { [queue] in Self.work(queue) })
      threads.withLock { $0.append(thread) }
    }
  }

  func stop() {
    reloadWaiters.end()
    queue.close()
    let stopping = threads.withLock { threads in
      defer { threads = [] }
      return threads
    }
    for thread in stopping { thread.join() }
  }

  var statistics: ContentCacheStatistics {
    let (bytes, contents) = lru.withLock { ($0.bytes, $0.count) }
    return ContentCacheStatistics(
      budget: budget, bytes: bytes, contents: contents, hits: hits.count, misses: misses.count)
  }

  private static func work(_ queue: BlockingQueue<ArchiveContent>) {
    withBuffer { buffer in
      while let content = queue.dequeue() {
        // A few chunks, then the next content in the queue.
        while content.decode(buffer, steps: 16), !queue.enqueue(content) {}
      }
    }
  }

  /// Removes a content from the LRU; the next `account` adds it again.
  func remove(_ content: ArchiveContent) { lru.withLock { $0.remove(content) } }

  /// Has a thread of the pool decode a content, or one of its layer if that is isolated.
  /// - Returns: false if there are no threads.
  func enqueue(_ content: ArchiveContent) -> Bool {
    if threads.withLock({ $0.isEmpty }) { return false }
    if !content.gate.isIsolated { return queue.enqueue(content) }
    content.gate.run { Self.withBuffer { buffer in while content.decode(buffer, steps: 16) {} } }
    return true
  }

  private static func withBuffer(_ body: (UnsafeMutableRawBufferPointer) -> Void) {
    let buffer = UnsafeMutableRawBufferPointer.allocate(
      byteCount: ArchiveContent.chunkSize, alignment: 4096)
    defer { buffer.deallocate() }
    body(buffer)
  }

  func count(isHit: Bool) { (isHit ? hits : misses).add(1) }

  var mayUseFile: Bool { lru.withLock { $0.files < mostFiles } }

  func touch(_ content: ArchiveContent) { lru.withLock { $0.touch(content) } }

  /// Sets the memory of a content, and evicts others to make room.
  /// - Returns: the bytes by which the budget is exceeded nevertheless.
  @discardableResult
  func account(_ content: ArchiveContent, bytes: Int, isFile: Bool) -> Int {
    lru.withLock { $0.set(content, bytes: bytes, isFile: isFile) }
    // The first eviction of a content leaves its index.
    for _ in 0..<2 where evictOldest(except: content) == 0 { break }
    return max(0, lru.withLock { $0.bytes } - budget)
  }

  /// Evicts contents while the budget is exceeded.
  /// - Returns: how many.
  private func evictOldest(except content: ArchiveContent) -> Int {
    let evicted = lru.withLock { lru in
      var evicted: [ArchiveContent] = []
      while lru.bytes > budget || lru.files > mostFiles, let oldest = lru.oldest, oldest !== content {
        lru.remove(oldest)
        evicted.append(oldest)
      }
      return evicted
    }
    evict(evicted)
    return evicted.count
  }

  func evictAll() { evict(lru.withLock { $0.removeAll() }) }

  private func evict(_ evicted: [ArchiveContent]) {
    for content in evicted {
      // It is being decoded and stays, or its index does.
      guard let (bytes, isFile) = content.evict() else { continue }
      lru.withLock { $0.set(content, bytes: bytes, isFile: isFile) }
    }
  }
}

/// The contents that use memory, in the order of their last use. It and `slot` in each content are guarded
/// by the pool's lock.
private struct ContentLRU {
  private struct Entry {
    let content: ArchiveContent
    let bytes: Int
    let isFile: Bool
  }

  private(set) var bytes = 0
  private(set) var files = 0
  var isClosed = false
  private var entries = Slab<Entry>()
  private var order = LRUList()

  var count: Int { entries.count }

  var oldest: ArchiveContent? { entries[order.oldest]?.content }

  mutating func touch(_ content: ArchiveContent) {
    if content.slot != 0 { order.touch(content.slot) }
  }

  /// Sets the memory of a content and makes it the most recently used one.
  mutating func set(_ content: ArchiveContent, bytes: Int, isFile: Bool) {
    remove(content)
    if bytes == 0 || isClosed { return }
    content.slot = entries.insert(Entry(content: content, bytes: bytes, isFile: isFile))
    order.touch(content.slot)
    self.bytes += bytes
    files += isFile ? 1 : 0
  }

  mutating func remove(_ content: ArchiveContent) {
    guard let entry = entries.remove(content.slot) else { return }
    order.remove(content.slot)
    content.slot = 0
    bytes -= entry.bytes
    files -= entry.isFile ? 1 : 0
  }

  mutating func removeAll() -> [ArchiveContent] {
    var removed: [ArchiveContent] = []
    while let oldest {
      remove(oldest)
      removed.append(oldest)
    }
    return removed
  }
}
