import Fuse
import Glibc
import Posix
import TestSupport
import Testing

@testable import Layers
@testable import Volume

/// The invalidations of a successor before it answers the program that has removed a layer.
@Suite struct ChangedLayersTests {
  /// A layer with `a/b/of-mod` above one with `a/b/of-main`, all of it looked up before the upper one was removed.
  private final class Change {
    let folder: TemporaryFolder
    let volume: Volume
    let kernel = NotifierStub()
    let invalidator: Invalidator
    /// The predecessor's, which watches `a/b` of the layer.
    private let inotify: CInt

    init() throws {
      folder = try TemporaryFolder()
      try (folder.folder("mod/a/b") / "of-mod").write("")
      try (folder.folder("main/a/b") / "of-main").write("")
      let memory = try SharedMemory(name: "test", size: Volume.memorySize)
      inotify = inotify_init1(CInt(IN_CLOEXEC | IN_NONBLOCK))
      let watch = inotify_add_watch(inotify, (folder / "mod/a/b").text, UInt32(IN_CREATE))
      try #require(inotify >= 0 && watch >= 0)
      try Self.lookUpAll(
        try Self.volume(LayerStack(layers: Self.layers(["mod", "main"], in: folder)), memory))
      let layers = try Self.layers(["main", "mod"], in: folder).map { Layer.directory($0) }
      volume = try Self.volume(
        LayerStack(
          layers: [layers[0]], retired: [layers[1]], ids: [1, 0].map { LayerID(rawValue: $0) },
          former: [1, 0]), memory)
      invalidator = Invalidator(
        store: volume.store, queue: volume.queue, kernel: kernel, counters: InvalidationCounters(),
        observer: nil, unreadEvents: UnreadEvents(owning: inotify))
    }

    private static func layers(_ names: [String], in folder: TemporaryFolder) throws -> [DirectoryLayer] {
      try names.enumerated().map { index, name in
        try DirectoryLayer(path: (folder / ByteString(name)).bytes, index: index, covered: nil)
      }
    }

    private static func volume(_ stack: LayerStack, _ memory: SharedMemory) throws -> Volume {
      var options = VolumeOptions()
      options.memory = memory
      return try Volume(stack: stack, options: options)
    }

    private static func lookUpAll(_ volume: Volume) throws {
      let a = try InheritedCachesTests.Death.lookUp("a", in: .root, volume.store)
      let b = try InheritedCachesTests.Death.lookUp("b", in: a, volume.store)
      for name in ["of-mod", "of-main"] {
        _ = try InheritedCachesTests.Death.lookUp(name, in: b, volume.store)
      }
    }

    /// The names that the kernel has to look up again before the program is answered.
    func expiredNames() -> Set<String> {
      invalidator.invalidate(Invalidation(subject: .formerLayers))
      let expired = kernel.notifications.withLock { $0 }.filter { $0.hasPrefix("expire ") }
      return Set(expired.map { String($0.dropFirst("expire ".count)) }).subtracting(["."])
    }
  }

  @Test("what has been quiet since the predecessor needs no comparison before the answer")
  func quiet() throws {
    let change = try Change()
    #expect(change.expiredNames() == ["a", "b", "of-mod"])
    #expect(change.volume.store.isInherited(.root), "its turn comes later")
    #expect(change.volume.store.recordedFingerprint(of: .root) == .unknown)
  }

  @Test("what has changed since the predecessor is compared before the answer")
  func changed() throws {
    let change = try Change()
    try (change.folder / "mod/a/b/of-mod").remove()
    try (change.folder / "mod/a/b/new").write("")
    #expect(change.expiredNames().isSuperset(of: ["a", "b", "of-mod", "of-main"]))
  }
}
