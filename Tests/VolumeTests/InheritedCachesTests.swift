import Fuse
import Posix
import TestSupport
import Testing

@testable import Layers
@testable import Volume

/// The invalidations of a successor: the kernel has cached from its predecessor what the layers no longer have.
@Suite struct InheritedCachesTests {
  /// Two layers with `a/b/file` in the lower one, all of it looked up before the death of the process.
  struct Death {
    let folder: TemporaryFolder
    let memory: SharedMemory
    let a, b, file: NodeID

    init() throws {
      folder = try TemporaryFolder()
      _ = try folder.folder("0")
      try (folder.folder("1/a/b") / "file").write("content")
      // So that no change is so recent that another one could have the same time.
      let born = try (folder / "1/a/b/file").status().changed
      #expect(eventually(within: 20) { TimeSpec.now.milliseconds(since: born) > 100 })
      memory = try SharedMemory(name: "test", size: Volume.memorySize)
      let store = try Self.volume(folder, memory).store
      a = try Self.lookUp("a", in: .root, store)
      b = try Self.lookUp("b", in: a, store)
      file = try Self.lookUp("file", in: b, store)
      _ = try store.merged(of: b)
    }

    func successor() throws -> Volume { try Self.volume(folder, memory) }

    private static func volume(_ folder: TemporaryFolder, _ memory: SharedMemory) throws -> Volume {
      let layers = try (0..<2).map { index in
        try DirectoryLayer(path: (folder / ByteString("\(index)")).bytes, index: index, covered: nil)
      }
      var options = VolumeOptions()
      options.memory = memory
      return try Volume(stack: LayerStack(layers: layers), options: options)
    }

    static func lookUp(_ name: String, in parent: NodeID, _ store: NodeStore) throws -> NodeID {
      let merged = try store.merged(of: parent)
      let bytes = Array(name.utf8)
      let found = try withCName(bytes) { name throws(Errno) in try merged.lookup(name) }
      let entry = try #require(found)
      return try withCName(bytes) { name throws(Errno) in
        try store.entry(entry, name, in: parent, merged).node
      }
    }
  }

  private func invalidator(_ volume: Volume, _ kernel: NotifierStub, _ isCompared: Latch) -> Invalidator {
    Invalidator(
      store: volume.store, queue: volume.queue, kernel: kernel, counters: InvalidationCounters(),
      observer: nil, isCompared: isCompared)
  }

  /// Lets the comparison go on until it has ended.
  static func finish(_ invalidator: Invalidator, _ isCompared: Latch) {
    let hasEnded = Locked(false)
    isCompared.whenOpen { hasEnded.withLock { $0 = true } }
    while !hasEnded.withLock({ $0 }) { invalidator.invalidate(Invalidation(subject: .inherited)) }
  }

  @Test("a request in a directory before its turn takes nothing back that is still true")
  func earlyRequest() throws {
    let death = try Death()
    let volume = try death.successor()
    let (kernel, isCompared) = (NotifierStub(), Latch())
    let invalidator = invalidator(volume, kernel, isCompared)
    #expect(volume.store.inheritedPath(to: death.b) == [.root, death.a, death.b])

    // A request has resolved it, which is other than what the successor knew.
    _ = try volume.store.merged(of: death.a)
    invalidator.invalidate(Invalidation(subject: .parts(death.a)))
    #expect(!volume.store.isInherited(.root) && !volume.store.isInherited(death.a))
    #expect(volume.store.isInherited(death.b), "its turn has not come")
    Self.finish(invalidator, isCompared)
    #expect(!volume.store.isInherited(death.b))
    #expect(kernel.notifications.withLock { $0 } == [])
    #expect(volume.store.isCovered(death.b))
  }

  @Test("a change while no process watched is invalidated once", arguments: [true, false])
  func changed(isEarly: Bool) throws {
    let death = try Death()
    try (death.folder / "1/a/b/file").write("other content")
    try (death.folder / "1/a/new").write("")
    let volume = try death.successor()
    let (kernel, isCompared) = (NotifierStub(), Latch())
    let invalidator = invalidator(volume, kernel, isCompared)
    if isEarly {
      _ = try volume.store.merged(of: death.b)
      invalidator.invalidate(Invalidation(subject: .parts(death.b)))
    }
    Self.finish(invalidator, isCompared)
    let notifications = kernel.notifications.withLock { $0 }
    for expected in ["expire new", "content \(death.file.rawValue & 0xFF)"] {
      #expect(notifications.filter { $0 == expected }.count == 1, "\(expected) in \(notifications)")
    }
  }

  @Test("a directory that is moved to where the comparison has been is compared")
  func movedDirectory() throws {
    let death = try Death()
    let volume = try death.successor()
    let isCompared = Latch()
    let caches = InheritedCaches(invalidator(volume, NotifierStub(), isCompared))
    let walk = InheritedWalk()
    #expect(walk.next() == .root)
    caches.comparePath(to: .root)
    walk.add([death.a])
    try (death.folder / "1/a/b").rename(to: death.folder / "1/b")
    let name = Array("b".utf8)
    volume.store.recordRename(
      of: EntryKey(parent: death.a, name: name), to: EntryKey(parent: .root, name: name))
    while !caches.compareNext(of: walk) {}
    #expect(!volume.store.isInherited(death.b))
  }

  @Test("a directory that came before its parent was compared is covered afterwards")
  func newDirectory() throws {
    let death = try Death()
    _ = try death.folder.folder("1/a/b/new")
    let volume = try death.successor()
    let node = try Death.lookUp("new", in: death.b, volume.store)
    _ = try volume.store.merged(of: node)
    #expect(!volume.store.isCovered(node) && !volume.store.isInherited(node))
    let isCompared = Latch()
    Self.finish(invalidator(volume, NotifierStub(), isCompared), isCompared)
    #expect(volume.store.isCovered(node))
    #expect(volume.store.table.withLock { $0.checkInvariants() } == [])
  }
}

@Suite struct LatchTests {
  @Test("what waits for a latch is run once, when it opens; later at once")
  func order() {
    let runs = Locked<[Int]>([])
    let latch = Latch()
    for number in 0..<3 { latch.whenOpen { runs.withLock { $0.append(number) } } }
    #expect(runs.withLock { $0 } == [])
    latch.open()
    latch.open()
    #expect(runs.withLock { $0 } == [0, 1, 2])
    latch.whenOpen { runs.withLock { $0.append(3) } }
    #expect(runs.withLock { $0 } == [0, 1, 2, 3])
    latch.close()
    latch.whenOpen { runs.withLock { $0.append(4) } }
    #expect(runs.withLock { $0.count } == 4)
    latch.open()
    #expect(runs.withLock { $0.last } == 4)
  }
}
