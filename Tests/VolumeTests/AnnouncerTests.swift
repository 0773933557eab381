import Fuse
import Layers
import Posix
import TestSupport
import Testing

@testable import Volume

/// The announcer without a mount: it must not touch whatever the mount's path refers to.
@Suite struct AnnouncerTests {
  /// A kernel whose mount path refers to a plain directory, or to nothing.
  private final class UnmountedKernel: KernelNotifier {
    private let path: ByteString?
    init(_ path: ByteString?) { self.path = path }

    func invalidateEntry(_ name: [UInt8], in parent: NodeID) {}
    func expireEntry(_ name: [UInt8], in parent: NodeID) {}
    func deleteEntry(_ name: [UInt8], in parent: NodeID, of child: NodeID) {}
    func invalidateAttributes(of node: NodeID) {}
    func invalidateContent(of node: NodeID) {}
    func store(_ content: UnsafeRawBufferPointer, in node: NodeID) {}
    func size(of node: NodeID) -> UInt64 { 0 }
    func refreshAttributes(of node: NodeID) {}
    func setAccessTime(of node: NodeID, _ time: AttributeChanges.Time) {}
    func openRoot() throws(Errno) -> MountRoot {
      guard let path else { throw .staleFileHandle }
      let root = try withCName(path.bytes) { path throws(Errno) in try Descriptor.open(path, [.pathOnly]) }
      return MountRoot(root, isDetached: false)
    }
  }

  private let reserved = ReservedNames(control: Array(".routes".utf8), resources: Array("rsrc:".utf8))

  @Test("a directory that is not the mount is recognized and left unchanged", arguments: [true, false])
  func notOurMount(pathExists: Bool) throws {
    let folder = try TemporaryFolder()
    let (layer, victim) = (try folder.folder("layer"), try folder.folder("victim"))
    for directory in [layer, victim] {
      try (directory / "changed").write("content")
      try (directory / "gone").write("content")
    }
    let before = try Command("ls", "-lR", "--full-time", victim.text).check().outputText
    let stack = LayerStack(layers: [try DirectoryLayer(path: layer.bytes, index: 0, covered: nil)])
    let volume = try Volume(stack: stack, options: VolumeOptions())
    _ = try volume.store.merged(of: .root)
    try (layer / "gone").remove()
    try (layer / "new").write("content")

    let announcer = try Announcer(volume.store, reserved)
    try announcer.start(UnmountedKernel(pathExists ? victim : nil))
    let changes: [(String, Invalidation.Aspects)] = [
      ("changed", [.modified, .closed]), ("gone", .removed), ("new", .added),
    ]
    for (name, aspects) in changes {
      let key = EntryKey(parent: .root, name: Array(name.utf8))
      announcer.record(.name(key, NameChange(aspects: aspects, layers: [0])))
    }
    announcer.record(.directory(.root))
    announcer.flush()
    // The new file has two events, appeared and written.
    #expect(eventually(within: 5) { announcer.figures.dropped == 5 }, "\(announcer.figures)")
    announcer.stop()
    #expect(
      announcer.figures.announced == 0 && announcer.figures.lastDrop == "the mount's path leads elsewhere")
    #expect(try Command("ls", "-lR", "--full-time", victim.text).check().outputText == before)
  }

  @Test("directories that the kernel does not know have no events")
  func unknown() throws {
    let folder = try TemporaryFolder()
    let layer = try folder.folder("layer")
    try (layer / "d").makeDirectory()
    let stack = LayerStack(layers: [try DirectoryLayer(path: layer.bytes, index: 0, covered: nil)])
    let volume = try Volume(stack: stack, options: VolumeOptions())
    let mapper = MountEventMapper(store: volume.store, reserved: reserved)
    let merged = try volume.store.merged(of: .root)
    let node = try volume.store.entry(try #require(try merged.lookup("d")), "d", in: .root, merged).node
    #expect(mapper.events(for: .directory(node)) == [.directory(node)])
    let key = EntryKey(parent: node, name: [65])
    let change = NameChange(aspects: .removed, layers: [0])
    #expect(mapper.events(for: .name(key, change)) == [.name(key, .disappeared(isDirectory: false))])
    volume.store.forget(node, lookups: 1)
    #expect(mapper.events(for: .directory(node)) == [] && mapper.events(for: .name(key, change)) == [])
  }

  @Test("events still in the queue at the unmount are dropped and counted")
  func end() throws {
    let folder = try TemporaryFolder()
    let stack = LayerStack(layers: [
      try DirectoryLayer(path: try folder.folder("layer").bytes, index: 0, covered: nil)
    ])
    let volume = try Volume(stack: stack, options: VolumeOptions())
    let announcer = try Announcer(volume.store, reserved)
    for number in 0..<1000 {
      let key = EntryKey(parent: .root, name: Array("\(number)".utf8))
      announcer.record(.name(key, NameChange(aspects: .removed, layers: [0])))
    }
    announcer.flush()
    // It is stopped before its thread starts.
    announcer.stop()
    try announcer.start(UnmountedKernel(nil))
    #expect(eventually(within: 5) { announcer.figures.dropped == 1000 }, "\(announcer.figures)")
    #expect(announcer.figures.announced == 0)
    announcer.stop()
  }
}
