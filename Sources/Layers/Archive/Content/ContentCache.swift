import Containers
import Glibc
import Posix

/// What the unpacked contents take, and how often they served.
public struct ContentCacheStatistics: Sendable, Hashable {
  /// Bytes that they may take.
  public var budget = 0
  /// Bytes that they take.
  public var bytes = 0
  /// How many there are.
  public var contents = 0
  /// Reads that were served at once.
  public var hits: UInt64 = 0
  /// Reads that had to wait for something to be unpacked.
  public var misses: UInt64 = 0
}

/// The unpacked contents of the archives' entries, within a budget, the least recently used let go first; and
/// the threads that unpack.
public final class ContentCache: Sendable {
  /// The budget where the user does not choose one, in bytes.
  public static let defaultBudget = 256 << 20

  let pool: ContentPool

  /// A cache.
  /// - Parameter budget: bytes that it may take.
  public init(budget: Int = ContentCache.defaultBudget) { pool = ContentPool(budget: budget) }

  // The contents hold the pool, and the pool holds them.
  deinit { pool.close() }

  /// Starts the threads. Before, and after the end, who reads unpacks for himself.
  /// - Throws: EAGAIN when the system has no room for them.
  public func start(threads count: Int) throws(Errno) { try pool.start(threads: count) }

  /// Ends the threads, after what waits is done.
  public func stop() { pool.stop() }

  /// Lets all contents go but those that are just being unpacked.
  public func evictAll() { pool.evictAll() }

  /// What it holds now.
  public var statistics: ContentCacheStatistics { pool.statistics }
}

/// What a cache consists of, for the contents.
final class ContentPool: Sendable {
  /// Bytes that may be taken.
  let budget: Int
  private let lru = Locked(ContentLRU())
  private let queue = BlockingQueue<ArchiveContent>()
  private let reloadWaiters = ReloadWaiters()
  private let threads = Locked<[ThreadHandle]>([])
  private let hits = Counter()
  private let misses = Counter()
  /// How many contents may be in files.
  private let mostFiles: Int

  init(budget: Int) {
    self.budget = budget
    var limit = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    mostFiles = min(1024, max(16, Int(clamping: limit.rlim_max) / 32))
  }

  /// Keeps nothing from now on.
  func close() {
    lru.withLock { lru in
      lru.isClosed = true
      _ = lru.removeAll()
    }
  }

  func start(threads count: Int) throws(Errno) {
    for _ in 0..<max(1, count) {
      let thread = ThreadHandle(try Thread(name: "unpacker") { [queue] in Self.work(queue) })
      threads.withLock { $0.append(thread) }
    }
  }

  func stop() {
    reloadWaiters.end()
    queue.close()
    let ending = threads.withLock { threads in
      defer { threads = [] }
      return threads
    }
    for thread in ending { thread.join() }
  }

  var statistics: ContentCacheStatistics {
    let (bytes, contents) = lru.withLock { ($0.bytes, $0.count) }
    return ContentCacheStatistics(
      budget: budget, bytes: bytes, contents: contents, hits: hits.count, misses: misses.count)
  }

  private static func work(_ queue: BlockingQueue<ArchiveContent>) {
    let buffer = UnsafeMutableRawBufferPointer.allocate(
      byteCount: ArchiveContent.chunkSize, alignment: 4096)
    defer { buffer.deallocate() }
    while let content = queue.dequeue() {
      // A part of it, then the others have their turn.
      while content.decode(buffer, steps: 16), !queue.enqueue(content) {}
    }
  }

  // MARK: - For the contents

  /// Holds a content no more; its room is not counted until it is accounted for again.
  func release(_ content: ArchiveContent) { lru.withLock { $0.remove(content) } }

  /// Has a content wait for its archive to be read anew.
  func awaitReload(_ content: ArchiveContent) { reloadWaiters.add(content) }

  /// Has a content unpacked by one of the threads.
  /// - Returns: false if there are none.
  func enqueue(_ content: ArchiveContent) -> Bool {
    threads.withLock { !$0.isEmpty } && queue.enqueue(content)
  }

  func count(isHit: Bool) { (isHit ? hits : misses).add(1) }

  /// Whether one more content may be in a file.
  var mayUseFile: Bool { lru.withLock { $0.files < mostFiles } }

  /// Notes that a content was used.
  func touch(_ content: ArchiveContent) { lru.withLock { $0.touch(content) } }

  /// Notes what a content takes now, and lets others go to make room for it.
  func account(_ content: ArchiveContent, bytes: Int, isFile: Bool) {
    let dropped = lru.withLock { lru in
      lru.set(content, bytes: bytes, isFile: isFile)
      var dropped: [ArchiveContent] = []
      while lru.bytes > budget || lru.files > mostFiles, let oldest = lru.oldest, oldest !== content {
        lru.remove(oldest)
        dropped.append(oldest)
      }
      return dropped
    }
    drop(dropped)
  }

  /// Lets all contents go but those that are just being unpacked.
  func evictAll() {
    drop(lru.withLock { $0.removeAll() })
  }

  private func drop(_ dropped: [ArchiveContent]) {
    for content in dropped {
      // One that is just being unpacked stays.
      guard let (bytes, isFile) = content.drop() else { continue }
      lru.withLock { $0.set(content, bytes: bytes, isFile: isFile) }
    }
  }
}

/// The contents that take room, in the order of their last use. The pool's lock guards it, and `slot` in each
/// content.
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

  /// Records what a content takes, and makes it the most recently used one.
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
