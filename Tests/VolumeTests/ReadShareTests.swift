import Fuse
import Posix
import TestSupport
import Testing

@testable import Layers
@testable import Volume

/// What the thread that answers a READ of a stream prefetches. The prefetcher's own thread runs only where a test says so.
@Suite struct ReadShareTests {
  private final class Fixture: Sendable {
    let folder: TemporaryFolder
    let volume: Volume
    /// In the order of a walk.
    let files: [NodeID]

    init(directories: Int, files count: Int = 4, size: Int = 4) throws {
      folder = try TemporaryFolder()
      for directory in 0..<directories {
        let path = try folder.folder(ByteString("main/\(directory)"))
        for file in 0..<count {
          try (path / ByteString("\(file)")).write([UInt8](repeating: UInt8(file), count: size))
        }
      }
      let layer = try DirectoryLayer(path: (folder / "main").bytes, index: 0, covered: nil)
      volume = try Volume(stack: LayerStack(layers: [layer]), options: VolumeOptions())
      files = try (0..<directories).flatMap { [volume] number in
        let directory = try InheritedCachesTests.Death.lookUp("\(number)", in: .root, volume.store)
        return try (0..<count).map {
          try InheritedCachesTests.Death.lookUp("\($0)", in: directory, volume.store)
        }
      }
      try volume.store.table.withLock { table in
        table[NodeTable.root].directory?.wasListed = true
        for file in files {
          let slot = try table.slot(of: file)
          _ = table.recordReportedSize(UInt64(size), of: slot)
          table[table[slot].parent].directory?.wasListed = true
        }
      }
    }

    /// Reads files one after the other, as a request worker does.
    func read(
      _ read: some Sequence<Int>, _ prefetcher: FilePrefetcher, as access: LayerAccess = .shared
    ) throws {
      RequestThread.begin(request: 1, caller: 0)
      defer { RequestThread.begin(request: 0, caller: 0) }
      try LayerAccess.with(access) {
        for file in read.map({ files[$0] }) {
          let opened = try #require(try volume.store.openFile(of: file))
          prefetcher.recordRead(of: file, isFirst: opened.isNew)
        }
      }
    }

    /// One file in each of three directories: a stream begins with the last one.
    static let start = [3, 6, 9]

    func prefetcher(_ kernel: NotifierStub) -> FilePrefetcher {
      FilePrefetcher(store: volume.store, kernel: Locked(kernel))
    }

    func stores(_ range: Range<Int>) -> [String] { files[range].map { "store \($0.rawValue & 0xFF)" } }
  }

  @Test("the READ that begins a stream stores the files that follow")
  func stream() throws {
    let (fixture, kernel) = (try Fixture(directories: 12), NotifierStub())
    let prefetcher = fixture.prefetcher(kernel)
    try fixture.read(Fixture.start.dropLast(), prefetcher)
    #expect(kernel.notifications.withLock { $0 } == [])
    try fixture.read(Fixture.start.suffix(1), prefetcher)
    #expect(kernel.notifications.withLock { $0 } == fixture.stores(10..<10 + FilePrefetcher.share))
    #expect(prefetcher.stored.count == UInt64(FilePrefetcher.share))
  }

  @Test("a READ stores the files near it, more with each further one of its directory")
  func directory() throws {
    let (fixture, kernel) = (try Fixture(directories: 1, files: 60), NotifierStub())
    let prefetcher = fixture.prefetcher(kernel)
    var expected: [String] = []
    for (read, stored) in [(0, 0..<0), (1, 2..<4), (4, 5..<9), (9, 10..<14), (20, 21..<25)] {
      try fixture.read(read..<read + 1, prefetcher)
      expected += fixture.stores(stored)
      #expect(kernel.notifications.withLock { $0 } == expected)
    }
    // The nearest files before it, where there are none behind it.
    try fixture.read(59..<60, prefetcher)
    #expect(kernel.notifications.withLock { $0 } == expected + fixture.stores(55..<59).reversed())
  }

  @Test("the worker continues where a READ in a directory ends")
  func worker() throws {
    let (fixture, kernel) = (try Fixture(directories: 1, files: 100), NotifierStub())
    let prefetcher = fixture.prefetcher(kernel)
    try prefetcher.worker.start(LayerWatchdog { _ in })
    defer { prefetcher.worker.stop() }
    var expected: Set<String> = []
    for (read, stored) in [(0, 0..<0), (1, 2..<4), (4, 5..<9), (9, 10..<18), (18, 19..<35), (35, 36..<68)] {
      try fixture.read(read..<read + 1, prefetcher)
      expected.formUnion(fixture.stores(stored))
      #expect(eventually(within: 20) { kernel.notifications.withLock { $0.count } >= expected.count })
      #expect(kernel.notifications.withLock { Set($0) } == expected)
    }
  }

  @Test("the prefetcher's thread splits the processors meanwhile")
  func processors() throws {
    let fixture = try Fixture(directories: 40)
    let (current, answering) = (Locked<FilePrefetcher?>(nil), Locked<[Int32?]>([]))
    let stub = NotifierStub {
      guard RequestThread.request == 0, let prefetcher = current.withLock({ $0 }) else { return }
      answering.withLock { $0.append(prefetcher.processors.answering) }
    }
    let prefetcher = fixture.prefetcher(stub)
    current.withLock { $0 = prefetcher }
    defer { current.withLock { $0 = nil } }
    try prefetcher.worker.start(LayerWatchdog { _ in })
    try fixture.read(0..<9, prefetcher)
    // With each further directory of a READ the window grows.
    for file in [26, 45, 64] { try fixture.read(file..<file + 1, prefetcher) }
    prefetcher.worker.stop()
    let seen = answering.withLock { $0 }
    #expect(seen.contains { $0 != nil } == (processorCount == 2))
    #expect(seen.count > 4, "also within the directories before the stream")
    #expect(prefetcher.processors.answering == nil)
  }

  @Test("files that are large together are left to others")
  func large() throws {
    let size = FilePrefetcher.shareBytes / 2
    let (fixture, kernel) = (try Fixture(directories: 12, size: size), NotifierStub())
    try fixture.read(Fixture.start, fixture.prefetcher(kernel))
    #expect(kernel.notifications.withLock { $0 } == fixture.stores(10..<12))
  }

  @Test("a READ does not wait for another file system")
  func otherFileSystem() throws {
    let (fixture, kernel) = (try Fixture(directories: 12), NotifierStub())
    try fixture.volume.store.table.withLock { table in
      let slot = try table.slot(of: fixture.files[12])
      let (device, inode) = (table[slot].identity.device + 1, table[slot].identity.inode)
      // Else the table, which is checked at random, has it under its former identity.
      table.unindex(slot)
      table[slot].identity = FileIdentity(
        device: device, inode: inode, born: TimeSpec(seconds: 0, nanoseconds: 0))
      table.index(slot)
    }
    try fixture.read(Fixture.start, fixture.prefetcher(kernel))
    #expect(kernel.notifications.withLock { $0 } == fixture.stores(10..<12))
  }

  @Test("a READ does not open a directory that was evicted, or that has changed", arguments: [true, false])
  func evictedDirectory(isEvicted: Bool) throws {
    let (fixture, kernel) = (try Fixture(directories: 12), NotifierStub())
    try fixture.volume.store.table.withLock { table in
      let slot = try table.slot(of: fixture.files[12])
      let state = try #require(table[table[slot].parent].directory)
      if isEvicted { state.merged = nil } else { state.needsRefresh = true }
    }
    try fixture.read(Fixture.start, fixture.prefetcher(kernel))
    #expect(kernel.notifications.withLock { $0 } == fixture.stores(10..<12))
  }

  @Test("a thread that waits for layers prefetches nothing")
  func waiting() throws {
    let (fixture, kernel) = (try Fixture(directories: 12), NotifierStub())
    try fixture.read(Fixture.start, fixture.prefetcher(kernel), as: .waiting)
    #expect(kernel.notifications.withLock { $0 } == [])
  }

  @Test("a barrier waits until what a READ prefetches has been stored")
  func barrier() throws {
    let fixture = try Fixture(directories: 12)
    let (current, seen) = (Locked<FilePrefetcher?>(nil), Locked<[UInt64]>([]))
    let stub = NotifierStub {
      guard let prefetcher = current.withLock({ $0 }) else { return }
      prefetcher.whenStored { seen.withLock { $0.append(prefetcher.stored.count) } }
      #expect(seen.withLock { $0 } == [])
    }
    let prefetcher = fixture.prefetcher(stub)
    current.withLock { $0 = prefetcher }
    defer { current.withLock { $0 = nil } }
    try fixture.read(Fixture.start, prefetcher)
    #expect(seen.withLock { $0.count } == FilePrefetcher.share)
  }
}
