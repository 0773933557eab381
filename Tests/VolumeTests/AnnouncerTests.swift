import Fuse
import Layers
import Posix
import TestSupport
import Testing

@testable import Volume

/// The announcer without a mount: whatever its path leads to, nothing there is touched.
@Suite struct AnnouncerTests {
  /// A kernel that leads to a directory, or nowhere.
  private final class Elsewhere: KernelNotifier {
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
    func openRoot() throws(Errno) -> Descriptor {
      guard let path else { throw .staleFileHandle }
      return try withCName(path.bytes) { path throws(Errno) in try Descriptor.open(path, [.pathOnly]) }
    }
  }

  @Test("what the mount's path leads to is asked first, and left alone", arguments: [true, false])
  func elsewhere(leadsSomewhere: Bool) throws {
    let folder = try TemporaryFolder()
    let (layer, victim) = (try folder.folder("layer"), try folder.folder("victim"))
    for place in [layer, victim] {
      try (place / "changed").write("content")
      try (place / "gone").write("content")
    }
    let before = try Command("ls", "-lR", "--full-time", victim.text).check().outputText
    let stack = LayerStack(layers: [try DirectoryLayer(path: layer.bytes, index: 0, covered: nil)])
    let volume = try Volume(stack: stack, options: VolumeOptions())
    _ = try volume.merged(of: .root)
    try (layer / "gone").remove()
    try (layer / "new").write("content")

    let announcer = try Announcer()
    try announcer.start(volume, Elsewhere(leadsSomewhere ? victim : nil))
    let news: [(String, Invalidation.Aspects)] = [
      ("changed", [.modified, .closed]), ("gone", .went), ("new", .came),
    ]
    for (name, aspects) in news {
      let place = EntryKey(parent: .root, name: Array(name.utf8))
      announcer.note(.name(place, NameChange(aspects: aspects, layers: [0])))
    }
    announcer.note(.directory(.root))
    announcer.tellNotes()
    // The new file is owed two events: that it came, and that it was written.
    #expect(eventually(within: 5) { announcer.figures.dropped == 5 }, "\(announcer.figures)")
    announcer.stop()
    #expect(announcer.figures.told == 0 && announcer.figures.lastDrop == "the mount's path leads elsewhere")
    #expect(try Command("ls", "-lR", "--full-time", victim.text).check().outputText == before)
  }

  @Test("directories that the kernel does not know are not announced")
  func unknown() throws {
    let folder = try TemporaryFolder()
    let layer = try folder.folder("layer")
    try (layer / "d").makeDirectory()
    let stack = LayerStack(layers: [try DirectoryLayer(path: layer.bytes, index: 0, covered: nil)])
    let volume = try Volume(stack: stack, options: VolumeOptions())
    let merged = try volume.merged(of: .root)
    let node = try volume.answer(try #require(try merged.lookup("d")), "d", in: .root, merged).node
    #expect(volume.dueEvents(.directory(node)) == [.directory(node)])
    let place = EntryKey(parent: node, name: [65])
    let news = NameChange(aspects: .went, layers: [0])
    #expect(volume.dueEvents(.name(place, news)) == [.name(place, .disappeared(isDirectory: false))])
    volume.forget(node, lookups: 1)
    #expect(volume.dueEvents(.directory(node)) == [] && volume.dueEvents(.name(place, news)) == [])
  }

  @Test("what waits when the mount ends is dropped, and counted")
  func end() throws {
    let folder = try TemporaryFolder()
    let stack = LayerStack(layers: [
      try DirectoryLayer(path: try folder.folder("layer").bytes, index: 0, covered: nil)
    ])
    let volume = try Volume(stack: stack, options: VolumeOptions())
    let announcer = try Announcer()
    for number in 0..<1000 {
      let place = EntryKey(parent: .root, name: Array("\(number)".utf8))
      announcer.note(.name(place, NameChange(aspects: .went, layers: [0])))
    }
    announcer.tellNotes()
    // It has not begun to work when it is told to end.
    announcer.stop()
    try announcer.start(volume, Elsewhere(nil))
    #expect(eventually(within: 5) { announcer.figures.dropped == 1000 }, "\(announcer.figures)")
    #expect(announcer.figures.told == 0)
    announcer.stop()
  }
}
