import Fuse
import Posix
import TestSupport
import Testing

@testable import Layers
@testable import Volume

/// The dentries that the kernel has to drop: a reply from before a change would make them valid again.
@Suite struct FormerDentryTests {
  /// Expects no changes, and drops them.
  private struct Observer: EventObserver {
    func record(_ change: ObservedEvent) {}
    func flush() {}
  }

  /// A layer with `file`, which a program has read.
  private final class Fixture {
    let folder: TemporaryFolder
    let main: ByteString
    let volume: Volume
    let node: NodeID

    init() throws {
      folder = try TemporaryFolder()
      main = try folder.folder("main")
      try (main / "file").write("former")
      let layer = try DirectoryLayer(path: main.bytes, index: 0, covered: nil)
      volume = try Volume(stack: LayerStack(layers: [layer]), options: VolumeOptions())
      node = try InheritedCachesTests.Death.lookUp("file", in: .root, volume.store)
      _ = try volume.store.openFile(of: node)
    }

    /// What the kernel is notified of for `file`.
    func notifications(for mask: InotifyEvent.Mask, isAnnounced: Bool = true) -> [String] {
      let kernel = NotifierStub()
      let invalidator = Invalidator(
        store: volume.store, queue: volume.queue, kernel: kernel, counters: InvalidationCounters(),
        observer: isAnnounced ? Observer() : nil)
      let change = LayerEvent(directory: .root, layer: 0, name: Array("file".utf8), mask: mask)
      for found in volume.store.table.withLock({ LayerEventMapper.invalidations(for: change, in: &$0) }) {
        invalidator.invalidate(found)
      }
      return kernel.notifications.withLock { $0 }
    }
  }

  @Test("a file that was replaced loses its dentry after the name has expired", arguments: [true, false])
  func replaced(isAnnounced: Bool) throws {
    let fixture = try Fixture()
    try (fixture.main / "new").write("present")
    try (fixture.main / "new").rename(to: fixture.main / "file")
    let notifications = fixture.notifications(for: .movedTo, isAnnounced: isAnnounced)
    let expected = isAnnounced ? "delete file" : "drop file"
    #expect(notifications.filter { $0 == expected }.count == 1, "\(notifications)")
    let order = notifications.filter { [expected, "expire file"].contains($0) }
    #expect(order == ["expire file", expected])
  }

  @Test("a file that was removed loses its dentry")
  func removed() throws {
    let fixture = try Fixture()
    try (fixture.main / "file").remove()
    #expect(fixture.notifications(for: .deleted).contains("delete file"))
  }

  @Test("a file that has another name by now keeps its dentry and its watches")
  func moved() throws {
    let fixture = try Fixture()
    try (fixture.main / "file").rename(to: fixture.main / "elsewhere")
    let notifications = fixture.notifications(for: .movedFrom)
    #expect(notifications.contains("expire file") && !notifications.contains("delete file"))
  }

  @Test("the dentry of the file that has the name by now is left alone")
  func present() throws {
    let fixture = try Fixture()
    try (fixture.main / "new").write("present")
    try (fixture.main / "new").rename(to: fixture.main / "file")
    let present = try InheritedCachesTests.Death.lookUp("file", in: .root, fixture.volume.store)
    #expect(present != fixture.node)
    // Its event comes after the lookup.
    let notifications = fixture.notifications(for: [.created])
    #expect(notifications.contains("expire file") && !notifications.contains("delete file"))
  }

  @Test("a successor drops the dentries of files that were replaced before")
  func successor() throws {
    let death = try InheritedCachesTests.Death()
    let former = try death.successor()
    _ = try former.store.openFile(of: death.file)
    try (death.folder / "1/a/b/new").write("present")
    try (death.folder / "1/a/b/new").rename(to: death.folder / "1/a/b/file")
    let (kernel, isCompared) = (NotifierStub(), Latch())
    let invalidator = Invalidator(
      store: former.store, queue: former.queue, kernel: kernel, counters: InvalidationCounters(),
      observer: Observer(), isCompared: isCompared)
    InheritedCachesTests.finish(invalidator, isCompared)
    #expect(kernel.notifications.withLock { $0 }.contains("delete file"))
  }
}
