import Glibc
import Posix
import Synchronization
import TestSupport
import Testing

@testable import Layers

/// Copies of files appear whole.
@Suite struct CopyUpTests {
  @Test("a copy has content, holes, owner, mode, times and extended attributes", arguments: [true, false])
  func attributes(hasUnnamedFiles: Bool) throws {
    let fixture = try UpperFixture()
    let file = fixture.lower / "file"
    try file.write("begin")
    try file.setSize(40 << 20)
    try file.overwrite([UInt8](repeating: 7, count: 9 << 20), at: 20 << 20)
    try file.setOwner(1000, group: 1001)
    try file.setMode(0o6711)
    try file.setAttribute("user.note", [1, 2, 3])
    // cap_net_raw=p
    let capability: [UInt8] = [1, 0, 0, 2, 0, 32, 0, 0] + [UInt8](repeating: 0, count: 12)
    try file.setAttribute("security.capability", capability)
    try file.setAttribute("trusted.overlay.origin", [9])
    try file.setModified(TimeSpec(seconds: 1_000_000_000, nanoseconds: 123_456_789))
    try fixture.tree().upper.hasUnnamedFiles.store(hasUnnamedFiles, ordering: .relaxed)
    let copy = try fixture.copyUp("file")
    #expect(try Snapshots.description(of: copy) == Snapshots.description(of: file))
    #expect(try copy.attributeNames().sorted() == ["security.capability", "user.note"])
    #expect(try copy.status().blocks <= file.status().blocks + 16)
    #expect(try fixture.upperNames() == ["file"])
  }

  @Test("an entry of an archive, which has no descriptor, is copied up")
  func archive() throws {
    let content = (0..<(3 << 20)).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }
    let archive = try ArchiveFixture([.init("file", content, .deflated)], threads: 1)
    let fixture = try UpperFixture()
    let upper = try fixture.tree().upper
    let status = try archive.attributes("file")
    let copy = try upper.copyUp(
      "file", from: archive.stack.root().top, identity: status.identity, to: upper.layer.root, size: nil)
    #expect(copy.size == UInt64(content.count) && copy.modified == status.modified)
    #expect(try (fixture.upper / "file").read() == content)
  }

  @Test("as much is copied as remains after truncation")
  func size() throws {
    let fixture = try UpperFixture()
    try (fixture.lower / "file").write("0123456789")
    try (fixture.lower / "other").write("0123456789")
    #expect(try fixture.copyUp("file", size: 4).readText() == "0123")
    #expect(try fixture.copyUp("other", size: 0).readText() == "")
  }

  @Test("a copy can be executed at once")
  func execute() throws {
    let fixture = try UpperFixture()
    try Command("cp", "/bin/true", (fixture.lower / "program").text).check()
    try Command(fixture.copyUp("program").text).check()
  }

  @Test("copying up keeps the times of the parent")
  func parentTimes() throws {
    let fixture = try UpperFixture()
    try (fixture.folder.folder("1/d") / "file").write("x")
    try (fixture.lower / "d/link").makeLink(to: "x")
    let time = TimeSpec(seconds: 1_000_000_000, nanoseconds: 5)
    for directory in [fixture.lower / "d", fixture.upper] { try directory.setModified(time) }
    for path in [["d", "file"], ["d", "link"]] as [TreePath] {
      _ = try fixture.tree().openOwn(path)
      #expect(try (fixture.upper / "d").status().modified == time)
    }
    try fixture.tree().upper.close()
    #expect(try fixture.upper.status().modified == time)
  }

  @Test("a default ACL of the parent does not reach a copy")
  func inheritedACL() throws {
    let fixture = try UpperFixture()
    try (fixture.lower / "file").write("x")
    try fixture.folder.folder("1/d").setMode(0o750)
    try Command("setfattr", "-n", "system.posix_acl_default", "-v", sampleACL, fixture.upper.text).check()
    for name in ["file", "d"] as [ByteString] {
      let copy = try fixture.copyUp(name)
      #expect(try Snapshots.description(of: copy) == Snapshots.description(of: fixture.lower / name))
    }
  }

  @Test("another file of the name, and a name that is taken, are refused")
  func refused() throws {
    let fixture = try UpperFixture()
    let (file, other) = (fixture.lower / "file", fixture.lower / "other")
    try file.write("x")
    try other.write("y")
    let tree = try fixture.tree()
    let (root, lower) = (tree.upper.layer.root, tree.stack.layers[1].root)
    let identity = try lower.attributes(of: "other").identity
    let stale = try errorNumber {
      _ = try tree.upper.copyUp("file", from: lower, identity: identity, to: root, size: nil)
    }
    #expect(stale == .staleFileHandle)
    for make in [
      { try (fixture.upper / "other").write("z") }, { try (fixture.upper / "other").makeWhiteout() },
    ] {
      try make()
      let taken = try errorNumber {
        _ = try tree.upper.copyUp("other", from: lower, identity: identity, to: root, size: nil)
      }
      #expect(taken == .fileExists)
      try (fixture.upper / "other").remove()
    }
    #expect(try fixture.upperNames() == [])
  }

  @Test("nothing appears when the disk is full", arguments: [true, false])
  func fullDisk(hasUnnamedFiles: Bool) throws {
    let fixture = try UpperFixture(tmpfs: "1m")
    try (fixture.lower / "file").write([UInt8](repeating: 1, count: 3 << 20))
    try fixture.tree().upper.hasUnnamedFiles.store(hasUnnamedFiles, ordering: .relaxed)
    #expect(try errorNumber { try fixture.copyUp("file") } == .noSpace)
    #expect(try fixture.upperNames() == [])
    // A process that another test has just forked can keep the unnamed copy, and so its space, until it calls exec.
    #expect(eventually(within: 60) { (try? fixture.copyUp("file", size: 1000)) != nil })
  }

  @Test("of several threads that copy one file up, one does")
  func concurrent() throws {
    let fixture = try UpperFixture()
    try (fixture.lower / "file").write([UInt8](repeating: 1, count: 1 << 20))
    try fixture.folder.folder("1/d").setMode(0o700)
    let tree = try fixture.tree()
    let lower = tree.stack.layers[1].root
    let identity = try lower.attributes(of: "file").identity
    guard case .directory(let source, _) = try tree.lookup(["d"]) else { throw TestFailure("no directory") }
    let copies = Atomic(0)
    let refusals = Atomic(0)
    let threads = try (0..<8).map { _ in
      ThreadHandle(
        try Thread(name: "copy-up") {
          do throws(Errno) {
            try tree.upper.copyUpDirectory("d", from: source.top, to: tree.upper.layer.root)
            _ = try tree.upper.copyUp(
              "file", from: lower, identity: identity, to: tree.upper.layer.root, size: nil)
            copies.wrappingAdd(1, ordering: .relaxed)
          } catch {
            if error == .fileExists { refusals.wrappingAdd(1, ordering: .relaxed) }
          }
        })
    }
    for thread in threads { thread.join() }
    #expect(copies.load(ordering: .relaxed) == 1 && refusals.load(ordering: .relaxed) == 7)
    #expect(try fixture.upperNames() == ["d", "file"])
  }

  @Test("an open file without a name is copied to one without a name", arguments: [true, false])
  func unnamed(hasUnnamedFiles: Bool) throws {
    let fixture = try UpperFixture()
    let file = fixture.lower / "file"
    try file.write("content")
    try file.setMode(0o640)
    let tree = try fixture.tree()
    tree.upper.hasUnnamedFiles.store(hasUnnamedFiles, ordering: .relaxed)
    let lower = tree.stack.layers[1].root
    let opened = try lower.openFile("file", identity: lower.attributes(of: "file").identity)
    try file.remove()
    let copy = try tree.upper.copyUpUnnamed(opened, size: nil)
    #expect(try copy.write([UInt8]("C".utf8), at: 0) == 1)
    #expect(try copy.readAll() == [UInt8]("Content".utf8))
    #expect(try copy.attributes().mode & 0o7777 == 0o640 && copy.attributes().links == 0)
    let linked = try errorNumber { try tree.upper.makeLink("again", in: tree.stack.root(), to: copy) }
    #expect(linked == .noSuchFileOrDirectory)
    #expect(try fixture.upperNames() == [])
  }
}

/// An ACL with an entry for a user: `u::rwx,u:1000:rwx,g::r-x,m::rwx,o::r--`.
let sampleACL =
  "0x0200000001000700ffffffff02000700e803000004000500ffffffff10000700ffffffff20000400ffffffff"
