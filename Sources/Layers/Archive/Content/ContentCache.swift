import Glibc
import Posix

/// What the unpacked contents take, and how often they served.
public struct ContentFigures: Sendable, Hashable {
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
  public func dropAll() { pool.dropAll() }

  /// What it holds now.
  public var figures: ContentFigures { pool.figures }
}

/// What a cache consists of, for the contents.
final class ContentPool: Sendable {
  /// Bytes that may be taken.
  let budget: Int
  private let recent = Locked(RecentContents())
  private let line = BlockingQueue<ArchiveContent>()
  private let parked = ReloadWaiters()
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
    recent.withLock { recent in
      recent.isClosed = true
      _ = recent.takeAll()
    }
  }

  func start(threads count: Int) throws(Errno) {
    for _ in 0..<max(1, count) {
      let thread = ThreadHandle(try Thread(name: "unpacker") { [line] in Self.work(line) })
      threads.withLock { $0.append(thread) }
    }
  }

  func stop() {
    parked.end()
    line.close()
    let ending = threads.withLock { threads in
      defer { threads = [] }
      return threads
    }
    for thread in ending { thread.join() }
  }

  var figures: ContentFigures {
    let (bytes, contents) = recent.withLock { ($0.bytes, $0.count) }
    return ContentFigures(
      budget: budget, bytes: bytes, contents: contents, hits: hits.count, misses: misses.count)
  }

  private static func work(_ line: BlockingQueue<ArchiveContent>) {
    let buffer = UnsafeMutableRawBufferPointer.allocate(
      byteCount: ArchiveContent.chunkSize, alignment: 4096)
    defer { buffer.deallocate() }
    while let content = line.dequeue() {
      // A part of it, then the others have their turn.
      while content.proceed(buffer, steps: 16), !line.enqueue(content) {}
    }
  }

  // MARK: - For the contents

  /// Holds a content no more; its room is not counted until it is accounted for again.
  func release(_ content: ArchiveContent) { recent.withLock { $0.remove(content) } }

  /// Has a content wait for its archive to be read anew.
  func park(_ content: ArchiveContent) { parked.add(content) }

  /// Has a content unpacked by one of the threads.
  /// - Returns: false if there are none.
  func enqueue(_ content: ArchiveContent) -> Bool {
    threads.withLock { !$0.isEmpty } && line.enqueue(content)
  }

  func count(isHit: Bool) { (isHit ? hits : misses).add(1) }

  /// Whether one more content may be in a file.
  var mayUseFile: Bool { recent.withLock { $0.files < mostFiles } }

  /// Notes that a content was used.
  func touch(_ content: ArchiveContent) { recent.withLock { $0.touch(content) } }

  /// Notes what a content takes now, and lets others go to make room for it.
  func account(_ content: ArchiveContent, bytes: Int, isFile: Bool) {
    let dropped = recent.withLock { recent in
      recent.set(content, bytes: bytes, isFile: isFile)
      var dropped: [ArchiveContent] = []
      while recent.bytes > budget || recent.files > mostFiles, let oldest = recent.oldest, oldest !== content
      {
        recent.remove(oldest)
        dropped.append(oldest)
      }
      return dropped
    }
    drop(dropped)
  }

  /// Lets all contents go but those that are just being unpacked.
  func dropAll() {
    drop(recent.withLock { $0.takeAll() })
  }

  private func drop(_ dropped: [ArchiveContent]) {
    for content in dropped {
      // One that is just being unpacked stays.
      guard let (bytes, isFile) = content.drop() else { continue }
      recent.withLock { $0.set(content, bytes: bytes, isFile: isFile) }
    }
  }
}

/// The contents that take room, in the order of their use: a list through the contents, which the cache's lock
/// guards.
private struct RecentContents {
  private(set) var bytes = 0
  private(set) var count = 0
  private(set) var files = 0
  var isClosed = false
  private var newest: ArchiveContent?
  private(set) var oldest: ArchiveContent?

  mutating func touch(_ content: ArchiveContent) {
    guard content.link.isListed, newest !== content else { return }
    unlink(content)
    put(content)
  }

  mutating func set(_ content: ArchiveContent, bytes: Int, isFile: Bool) {
    remove(content)
    if bytes == 0 || isClosed { return }
    content.link.bytes = bytes
    content.link.isFile = isFile
    content.link.isListed = true
    self.bytes += bytes
    count += 1
    files += isFile ? 1 : 0
    put(content)
  }

  mutating func remove(_ content: ArchiveContent) {
    guard content.link.isListed else { return }
    unlink(content)
    bytes -= content.link.bytes
    count -= 1
    files -= content.link.isFile ? 1 : 0
    content.link = ContentLink()
  }

  /// One by one: let go as a chain, they would ask for a stack as deep as it is long.
  mutating func takeAll() -> [ArchiveContent] {
    var taken: [ArchiveContent] = []
    while let oldest {
      remove(oldest)
      taken.append(oldest)
    }
    return taken
  }

  private mutating func put(_ content: ArchiveContent) {
    content.link.older = newest
    content.link.newer = nil
    newest?.link.newer = content
    newest = content
    if oldest == nil { oldest = content }
  }

  private mutating func unlink(_ content: ArchiveContent) {
    let (newer, older) = (content.link.newer, content.link.older)
    if let newer { newer.link.older = older } else { newest = older }
    if let older { older.link.newer = newer } else { oldest = newer }
    content.link.newer = nil
    content.link.older = nil
  }
}

/// A content's place in the list of the recent ones.
struct ContentLink {
  /// Towards the newer ones; the list itself holds them by way of the newest.
  unowned(unsafe) var newer: ArchiveContent?
  var older: ArchiveContent?
  var bytes = 0
  var isFile = false
  var isListed = false
}
