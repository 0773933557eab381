import Glibc
import Posix
import TestSupport
import Testing

@testable import Layers

/// Whiteouts are names of one device.
@Suite struct WhiteoutDeviceTests {
  private let fixture: UpperFixture
  private let work: ByteString

  init() throws {
    fixture = try UpperFixture()
    work = fixture.upper / ".wh..wh.bundlefs-work"
  }

  private func fillLower(_ names: [ByteString]) throws {
    for name in names { try (fixture.lower / name).write("x") }
  }

  @Test("all whiteouts of a layer are one file, also those of another process")
  func links() throws {
    let names = ["a", "b", "c", "d"] as [ByteString]
    try fillLower(names)
    try fixture.copyUp("b")
    let tree = try fixture.tree()
    try tree.apply(.remove(["a"]))
    try tree.apply(.remove(["b"]))
    let other = try UpperTree([fixture.upper, fixture.lower])
    try other.apply(.remove(["c"]))
    try (work / "whiteout").remove()
    try tree.apply(.remove(["d"]))
    let found = try names.map { try (fixture.upper / $0).status() }
    #expect(found.allSatisfy { $0.kind == .characterDevice && $0.rdev == 0 })
    #expect(Set(found.map(\.inode)).count == 1 && found[0].links == 4)
    #expect(try fixture.upperNames() == names)
  }

  @Test("a name that became a whiteout meanwhile leaves nothing in the work folder")
  func sameFile() throws {
    try fillLower(["a", "b"])
    try fixture.copyUp("b")
    let tree = try fixture.tree()
    try tree.apply(.remove(["a"]))
    try (fixture.upper / "b").remove()
    try (fixture.upper / "b").makeHardLink(of: fixture.upper / "a")
    let isReplaced = try tree.upper.layer.root.withDescriptor { root throws(Errno) in
      try tree.upper.replaceByDevice("b", in: root, isDirectory: false)
    }
    #expect(isReplaced && (fixture.upper / "b").exists)
    #expect(try work.names() == ["whiteout"])
  }

  @Test("beyond the file system's limit of links there is another device", .timeLimit(.minutes(2)))
  func tooManyLinks() throws {
    try fillLower(["a", "b", "c"])
    let tree = try fixture.tree()
    try tree.apply(.remove(["a"]))
    let links = try fixture.folder.folder("links")
    var error: Errno?
    // ext4 has 65,000.
    for index in 0..<66_000 where error == nil {
      error = try errorNumber { try (links / ByteString("\(index)")).makeHardLink(of: work / "whiteout") }
    }
    try tree.apply(.remove(["b"]))
    try tree.apply(.remove(["c"]))
    let inodes = try ["a", "b", "c"].map { try (fixture.upper / $0).status().inode }
    #expect(inodes[1] == inodes[2])
    #expect((inodes[0] != inodes[1]) == (error == .tooManyLinks), "\(String(describing: error))")
  }

  @Test("directories on another mount get devices of their own")
  func otherMount() throws {
    let folder = try fixture.folder.folder("0/d")
    try Command("mount", "-t", "tmpfs", "tmpfs", folder.text).check()
    let layer = try DirectoryLayer(
      path: fixture.upper.bytes, index: 0, covered: nil, clonesMount: false, isWritable: true)
    let upper = try UpperLayer(layer)
    let parent = try withCName(folder.bytes) { path throws(Errno) in
      try Descriptor.open(path, [.pathOnly, .directory])
    }
    #expect(try upper.whiteouts.makeDevice("a", in: parent) && upper.whiteouts.makeDevice("b", in: parent))
    #expect(try (folder / "a").status().links == 1 && (folder / "b").status().kind == .characterDevice)
    upper.close()
  }
}
