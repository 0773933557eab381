import Fuse
import Posix
import TestSupport
import Testing

@testable import Layers
@testable import Volume

/// The invalidations for a change, without a layer or a kernel.
@Suite struct LayerEventMapperTests {
  /// A table with `folder` in the root and `file` (of layer 1) in `folder`; both directories are cached.
  private struct Scene {
    var table: NodeTable
    let folder: NodeID
    let file: NodeID

    init(isPinned: Bool = false, mergesTables: Bool = false) throws {
      table = NodeTable(budget: 10, mergesTables: mergesTables)
      let slot = table.lookUpDirectory(Array("folder".utf8), in: NodeTable.root, inodeNumber: 1 << 63)
      folder = table.number(of: slot)
      let identity = FileIdentity(device: 1, inode: 77, born: TimeSpec(seconds: 0, nanoseconds: 0))
      let fileSlot = table.lookUpFile(
        identity, layer: 1, kind: .regular, name: Array("file".utf8), in: slot, inodeNumber: 77)
      file = table.number(of: fileSlot)
      for directory in [NodeTable.root, slot] {
        _ = table.set(NodeStore.ResolvedDirectory(found: .init(merged: nil), isCovered: true), of: directory)
      }
      if isPinned {
        _ = table.keep(LayerFile(try Descriptor.open("/", [.pathOnly])), of: identity, for: fileSlot)
      }
    }

    mutating func invalidations(
      _ name: String, _ mask: InotifyEvent.Mask, in directory: NodeID, layer: Int = 1
    ) -> [Invalidation] {
      LayerEventMapper.invalidations(
        for: LayerEvent(directory: directory, layer: layer, name: Array(name.utf8), mask: mask), in: &table)
    }
  }

  private func name(_ directory: NodeID, _ name: String, layer: Int = 1) -> Invalidation.Subject {
    .name(directory, Array(name.utf8), layer: layer)
  }

  @Test("writing to a file invalidates its content only")
  func modified() throws {
    var scene = try Scene()
    let changes: [(InotifyEvent.Mask, Invalidation.Aspects)] = [
      (.modified, .modified), (.closeWrite, .closed),
    ]
    for (mask, aspect) in changes {
      #expect(
        scene.invalidations("file", mask, in: scene.folder)
          == [Invalidation(subject: name(scene.folder, "file"), aspects: [.entry, .content, aspect])])
    }
  }

  @Test("a catalog's event invalidates the tables of its name in the folders of languages beside it")
  func catalogs() throws {
    var scene = try Scene(mergesTables: true)
    let slot = try scene.table.slot(of: scene.folder)
    let french = scene.table.lookUpDirectory(Array("fr.lproj".utf8), in: slot, inodeNumber: 1 << 62)
    let version = try #require(scene.table[french].directory?.version)
    let table = name(scene.table.number(of: french), "Main.strings", layer: 0)
    func invalidations(_ name: String, _ mask: InotifyEvent.Mask) -> [Invalidation] {
      scene.invalidations(name, mask, in: scene.folder).filter { $0.subject.directory != scene.folder }
    }
    let changes: [(String, InotifyEvent.Mask, Invalidation.Aspects)] = [
      ("Main.xcstrings", .modified, [.entry, .content, .modified]),
      ("Main.xcstrings", .closeWrite, [.entry, .content, .closed]),
      ("Main.xcstrings", .attributes, [.entry, .attributes]), ("Main.xcstrings", .movedFrom, .ofTable),
      ("Main.xcstrings", .created, .ofTable), (".wh.Main.xcstrings", .deleted, .ofTable),
    ]
    for (name, mask, aspects) in changes {
      #expect(invalidations(name, mask) == [Invalidation(subject: table, aspects: aspects)], "\(name)")
    }
    #expect(scene.table[french].directory?.version == version + changes.count)
    for name in [".xcstrings", "Main.strings", ""] {
      #expect(invalidations(name, .created).isEmpty, "\(name)")
    }
  }

  @Test("a change of attributes invalidates a file without its content, a directory with its parts")
  func attributes() throws {
    var scene = try Scene()
    #expect(
      scene.invalidations("file", .attributes, in: scene.folder)
        == [Invalidation(subject: name(scene.folder, "file"), aspects: [.entry, .attributes])])
    let found = scene.invalidations("folder", [.attributes, .isDirectory], in: .root)
    #expect(found.contains(Invalidation(subject: .parts(scene.folder))))
    #expect(found.contains(Invalidation(subject: .listing(scene.folder))))
    let own = scene.invalidations("", [.attributes, .isDirectory], in: scene.folder)
    #expect(Set(own.map(\.subject)) == [.parts(scene.folder), .listing(scene.folder)])
  }

  @Test(
    "a created or removed name invalidates the listing and its entry",
    arguments: [InotifyEvent.Mask.created, .deleted, .movedFrom, .movedTo])
  func names(mask: InotifyEvent.Mask) throws {
    var scene = try Scene()
    let subjects = scene.invalidations("other", mask, in: scene.folder).map(\.subject)
    #expect(subjects == [name(scene.folder, "other"), .listing(scene.folder)])
    let known = scene.invalidations("file", mask, in: scene.folder).map(\.subject)
    #expect(known == [name(scene.folder, "file"), .file(scene.file), .listing(scene.folder)])
    let directory = scene.invalidations("folder", [mask, .isDirectory], in: .root).map(\.subject)
    #expect(directory == [name(.root, "folder"), .parts(scene.folder), .listing(.root)])
  }

  @Test(
    "a whiteout invalidates the name that it hides", arguments: [InotifyEvent.Mask.created, .deleted])
  func whiteouts(mask: InotifyEvent.Mask) throws {
    var scene = try Scene()
    let hidden = scene.invalidations(".wh.folder", mask, in: .root, layer: 0).map(\.subject)
    #expect(hidden.contains(name(.root, "folder", layer: 0)))
    #expect(hidden.contains(.parts(scene.folder)) && hidden.contains(.listing(.root)))
    let opaque = scene.invalidations(".wh..wh..opq", mask, in: scene.folder, layer: 0).map(\.subject)
    #expect(opaque == [.parts(scene.folder), .listing(scene.folder)])
  }

  @Test("a pinned node stays with the file that loses its name, any other node with the name")
  func detaching() throws {
    for isPinned in [false, true] {
      var scene = try Scene(isPinned: isPinned)
      _ = scene.invalidations("file", .deleted, in: scene.folder, layer: 0)
      #expect(scene.table[try scene.table.slot(of: scene.file)].isDetached == false, "another layer's name")
      _ = scene.invalidations("file", .deleted, in: scene.folder)
      #expect(scene.table[try scene.table.slot(of: scene.file)].isDetached == isPinned)
      #expect(scene.table.checkInvariants().isEmpty)
    }
  }

  @Test("in an uncached directory nothing is invalidated, but its version grows")
  func uncached() throws {
    var scene = try Scene()
    let slot = try scene.table.slot(of: scene.folder)
    scene.table[slot].directory?.parts = nil
    #expect(scene.invalidations("file", .modified, in: scene.folder).isEmpty)
    #expect(scene.table[slot].directory?.version == 1)
    #expect(scene.invalidations("file", .modified, in: NodeID(rawValue: 4711)).isEmpty)
  }
}

@Suite struct InvalidatorTests {
  private func volume(_ folder: TemporaryFolder) throws -> Volume {
    let layers = try (0..<2).map { index in
      try DirectoryLayer(path: folder.folder(ByteString("\(index)")).bytes, index: index, covered: nil)
    }
    return try Volume(stack: LayerStack(layers: layers), options: VolumeOptions())
  }

  private func invalidator(_ volume: Volume, _ kernel: NotifierStub) -> Invalidator {
    Invalidator(
      store: volume.store, queue: volume.queue, kernel: kernel, counters: InvalidationCounters(),
      observer: nil)
  }

  @Test("a new part invalidates its names, the known ones and the listing, in that order")
  func arrival() throws {
    let folder = try TemporaryFolder()
    let volume = try volume(folder)
    try (folder.folder("1/d") / "main").write("")
    let merged = try volume.store.merged(of: .root)
    let found = try #require(try merged.lookup("d"))
    let node = try volume.store.entry(found, "d", in: .root, merged).node
    let inside = try volume.store.merged(of: node)
    _ = try volume.store.entry(try #require(try inside.lookup("main")), "main", in: node, inside)

    let kernel = NotifierStub()
    let invalidator = invalidator(volume, kernel)
    invalidator.invalidate(Invalidation(subject: .parts(node)))
    #expect(kernel.notifications.withLock { $0 } == [], "nothing has changed")

    try (folder.folder("0/d") / "over").write("")
    try (folder / "0/d/.wh.hidden").write("")
    invalidator.invalidate(Invalidation(subject: .parts(node)))
    let notifications = kernel.notifications.withLock { $0 }
    #expect(notifications.first == "expire .", "requests in flight come first")
    #expect(Set(notifications.dropFirst().prefix(3)) == ["expire main", "expire over", "expire hidden"])
    #expect(notifications.suffix(2) == ["expire .", "content \(node.rawValue & 0xFF)"])
    #expect(try volume.store.merged(of: node).parts.count == 2)
  }

  @Test("a removed part invalidates the names of the parts below, which its whiteouts may have hidden")
  func departure() throws {
    let folder = try TemporaryFolder()
    let volume = try volume(folder)
    for name in ["main", "hidden", "device"] as [ByteString] { try (folder.folder("1/d") / name).write("") }
    try (folder.folder("0/d") / ".wh.hidden").write("")
    let merged = try volume.store.merged(of: .root)
    let node = try volume.store.entry(try #require(try merged.lookup("d")), "d", in: .root, merged).node
    #expect(try volume.store.merged(of: node).parts.count == 2)

    try (folder / "0/d").rename(to: folder / "aside")
    let kernel = NotifierStub()
    invalidator(volume, kernel).invalidate(Invalidation(subject: .parts(node)))
    let notifications = kernel.notifications.withLock { $0 }
    #expect(
      Set(["expire main", "expire hidden", "expire device"]).isSubset(of: notifications), "\(notifications)")
    #expect(try volume.store.merged(of: node).parts.count == 1)
  }

  @Test("invalidations of one subject are merged, and done before a later barrier")
  func queue() throws {
    let queue = try InvalidationQueue()
    let reached = Locked(false)
    let subject = Invalidation.Subject.file(.root)
    queue.add([Invalidation(subject: subject, aspects: .attributes), Invalidation(subject: .listing(.root))])
    queue.add([Invalidation(subject: subject, aspects: .content)])
    _ = queue.addBarrier { reached.withLock { $0 = true } }
    let work = try #require(queue.take())
    #expect(work.count == 3)
    guard case .invalidate(let first) = work[0], case .barrier(let barrier) = work[2] else {
      Issue.record("wrong order")
      return
    }
    #expect(first == Invalidation(subject: subject, aspects: [.attributes, .content]))
    barrier()
    #expect(reached.withLock { $0 })
  }

  @Test("too many invalidations leave the comparison with a predecessor's caches in the queue")
  func comparison() throws {
    let queue = try InvalidationQueue()
    let inherited = Invalidation(subject: .inherited)
    let many = (0...InvalidationQueue.capacity).map {
      Invalidation(subject: .file(NodeID(rawValue: UInt64($0))))
    }
    for isFirst in [true, false] {
      queue.add(isFirst ? [inherited] + many : many + [inherited])
      let subjects = queue.take()?.map { work -> Invalidation.Subject? in
        if case .invalidate(let invalidation) = work { invalidation.subject } else { nil }
      }
      #expect(subjects == [.subtree(.root), .inherited])
    }
  }

  @Test("too many invalidations become one of the whole tree, before all barriers")
  func collapse() throws {
    let queue = try InvalidationQueue()
    let reached = Locked<[Int]>([])
    let count = InvalidationQueue.capacity
    for barrier in 0..<3 {
      queue.add(
        (0..<count).map { number in
          let node = NodeID(rawValue: UInt64(barrier * count + number))
          return Invalidation(subject: .file(node), aspects: .content)
        })
      _ = queue.addBarrier { reached.withLock { $0.append(barrier) } }
    }
    let work = try #require(queue.take())
    #expect(work.count == 4)
    guard case .invalidate(let first) = work[0] else {
      Issue.record("no invalidation first")
      return
    }
    #expect(first == Invalidation(subject: .subtree(.root)))
    for case .barrier(let barrier) in work { barrier() }
    #expect(reached.withLock { $0 } == [0, 1, 2])
    queue.add([Invalidation(subject: .file(.root), aspects: .content)])
    #expect(queue.take()?.count == 1, "the queue is as before")
  }
}

extension Invalidation.Subject {
  /// The directory of a name or a listing.
  fileprivate var directory: NodeID? {
    switch self {
    case .name(let directory, _, _), .listing(let directory), .parts(let directory): directory
    default: nil
    }
  }
}
