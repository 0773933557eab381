import Fuse
import Posix
import TestSupport
import Testing

@testable import Layers
@testable import Volume

/// What is stored of files that change between their prefetching and the end of a barrier.
@Suite struct PrefetchBatchTests {
  /// A volume with `a/file`, of which the kernel knows the size.
  private final class Fixture: Sendable {
    let folder: TemporaryFolder
    let volume: Volume
    let directory, file: NodeID

    init() throws {
      folder = try TemporaryFolder()
      try (folder.folder("main/a") / "file").write("text")
      let layer = try DirectoryLayer(path: (folder / "main").bytes, index: 0, covered: nil)
      volume = try Volume(stack: LayerStack(layers: [layer]), options: VolumeOptions())
      directory = try InheritedCachesTests.Death.lookUp("a", in: .root, volume.store)
      file = try InheritedCachesTests.Death.lookUp("file", in: directory, volume.store)
      let file = file
      try volume.store.table.withLock { table in
        _ = table.recordReportedSize(4, of: try table.slot(of: file))
      }
    }

    func change() { volume.store.recordChange(in: [directory]) }

    /// Reads the file, and stores it.
    func prefetch(
      _ kernel: NotifierStub, _ isIdle: Latch, isBeingRead: Bool = false, beforeStore: () -> Void = {}
    ) throws -> UInt64 {
      let known = try volume.store.table.withLock { table in
        PrefetchedFile(try table.slot(of: file), table)
      }
      let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 4096, alignment: 16)
      defer { buffer.deallocate() }
      var batch = PrefetchBatch(volume.store, buffer)
      batch.read(try #require(known))
      batch.keep()
      beforeStore()
      return batch.store(by: kernel, isIdle) { isBeingRead && $0 == file }
    }
  }

  @Test("what stays as it was read is stored")
  func unchanged() throws {
    let (fixture, kernel) = (try Fixture(), NotifierStub())
    #expect(try fixture.prefetch(kernel, Latch()) == 1)
    #expect(kernel.notifications.withLock { $0 } == ["store \(fixture.file.rawValue & 0xFF)"])
  }

  @Test("what has changed since it was read is not stored")
  func changedBefore() throws {
    let (fixture, kernel) = (try Fixture(), NotifierStub())
    #expect(try fixture.prefetch(kernel, Latch(), beforeStore: fixture.change) == 0)
    #expect(kernel.notifications.withLock { $0 } == [])
  }

  @Test("what a program waits for is not stored")
  func beingRead() throws {
    let (fixture, kernel) = (try Fixture(), NotifierStub())
    #expect(try fixture.prefetch(kernel, Latch(), isBeingRead: true) == 0)
    #expect(kernel.notifications.withLock { $0 } == [])
  }

  @Test("a barrier waits until what changes while it is stored has been invalidated")
  func changedMeanwhile() throws {
    let fixture = try Fixture()
    let (isIdle, seen) = (Latch(isOpen: true), Locked<[String]?>(nil))
    let kernel = Locked<NotifierStub?>(nil)
    let stub = NotifierStub {
      fixture.change()
      isIdle.whenOpen {
        let notifications = kernel.withLock { $0 }?.notifications.withLock { $0 }
        seen.withLock { $0 = notifications }
      }
    }
    kernel.withLock { $0 = stub }
    defer { kernel.withLock { $0 = nil } }
    #expect(try fixture.prefetch(stub, isIdle) == 1)
    let file = fixture.file.rawValue & 0xFF
    #expect(seen.withLock { $0 } == ["store \(file)", "content \(file)"])
  }
}
