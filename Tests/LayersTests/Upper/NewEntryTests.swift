import Glibc
import Posix
import TestSupport
import Testing

@testable import Layers

/// New entries, made in place or in place of a whiteout.
@Suite struct NewEntryTests {
  private static let modes: [UInt32] = [0o644, 0o6777, 0o1777, 0o700]

  @Test("an entry in place of a whiteout gets what one in place gets", arguments: [0, 0o22, 0o77])
  func sameAsInPlace(umask: UInt32) throws {
    for (hasACL, parentMode) in [(false, 0o755), (false, 0o2755), (true, 0o755), (true, 0o2770)] {
      let fixture = try UpperFixture()
      let parent = try fixture.folder.folder("0/d")
      try parent.setOwner(5, group: 6)
      try parent.setMode(UInt32(parentMode))
      if hasACL {
        try Command("setfattr", "-n", "system.posix_acl_default", "-v", sampleACL, parent.text).check()
      }
      for (index, mode) in Self.modes.enumerated() {
        let name = ByteString("\(index)")
        for prefix in ["f", "d", "l"] as [ByteString] { try (parent / (prefix + name + "w")).makeWhiteout() }
        for suffix in ["", "w"] as [ByteString] {
          try make(name + suffix, mode: mode, EntryOwner(user: 1000, group: 1001, umask: umask), in: fixture)
        }
        for prefix in ["f", "d", "l"] as [ByteString] {
          let made = try ["", "w"].map { try description(parent / (prefix + name + ByteString($0))) }
          #expect(made[0] == made[1], "\(prefix), mode \(String(mode, radix: 8)), parent \(parentMode)")
        }
      }
      try expectOwners(in: parent, givesGroup: parentMode & 0o2000 != 0)
    }
  }

  private func make(
    _ name: ByteString, mode: UInt32, _ owner: EntryOwner, in fixture: UpperFixture
  ) throws {
    let upper = try fixture.tree().upper
    let parent = try fixture.tree().parent(of: ["d", name])
    try withCName(("f" + name).bytes) { name throws(Errno) in
      try upper.makeNode(name, in: parent, mode: FileKind.regular.rawValue | mode, device: 0, owner)
    }
    try withCName(("d" + name).bytes) { name throws(Errno) in
      try upper.makeDirectory(name, in: parent, mode: mode, owner)
    }
    try withCName(("l" + name).bytes) { name throws(Errno) in
      try upper.makeSymbolicLink(name, in: parent, target: "target", owner)
    }
  }

  /// Without the time.
  private func description(_ path: ByteString) throws -> String {
    try path.setModified(TimeSpec(seconds: 1, nanoseconds: 0))
    return try Snapshots.description(of: path)
  }

  private func expectOwners(in parent: ByteString, givesGroup: Bool) throws {
    for name in try parent.names() {
      let status = try (parent / name).status()
      #expect(status.owner == 1000 && status.group == (givesGroup ? 6 : 1001), "\(name)")
    }
  }

  @Test("a thread is itself again after it has made an entry for another user")
  func actsAsSelf() throws {
    let fixture = try UpperFixture()
    let parent = try fixture.folder.folder("0/d")
    try make("a", mode: 0o600, EntryOwner(user: 1000, group: 1000, umask: 0), in: fixture)
    try (parent / "own").write("")
    #expect(try (parent / "own").status().owner == geteuid())
    #expect(try (parent / "fa").status().owner == 1000)
  }

  @Test("the default ACL of the parent replaces the umask")
  func defaultACL() throws {
    let fixture = try UpperFixture()
    let parent = try fixture.folder.folder("0/d")
    try make("plain", mode: 0o666, EntryOwner(user: 0, group: 0, umask: 0o27), in: fixture)
    try Command("setfattr", "-n", "system.posix_acl_default", "-v", sampleACL, parent.text).check()
    try make("acl", mode: 0o666, EntryOwner(user: 0, group: 0, umask: 0o27), in: fixture)
    #expect(try (parent / "fplain").status().permissions == 0o640)
    #expect(try (parent / "facl").status().permissions == 0o664)
  }

  @Test("names that are visible, too long or markers are refused, and so are whiteouts")
  func refused() throws {
    let fixture = try UpperFixture()
    try (fixture.lower / "below").write("x")
    try (fixture.upper / "own").write("x")
    let long = ByteString([UInt8](repeating: UInt8(ascii: "n"), count: 255))
    let expected: [(ByteString, Errno?)] = [
      ("below", .fileExists), ("own", .fileExists), (long, nil), (long + "n", .fileNameTooLong),
      (".wh.x", .invalidArgument), ("new", nil),
    ]
    for (name, error) in expected {
      for operation in [
        Operation.make([name], mode: FileKind.regular.rawValue, device: 0, owner: 0),
        .makeDirectory([name], mode: 0o755, owner: 0), .makeSymbolicLink([name], owner: 0),
        .link(["own"], [name]),
      ] {
        #expect(try errorNumber { try fixture.tree().apply(operation) } == error, "\(operation)")
        if error == nil { (fixture.upper / name).removeTree() }
      }
    }
    let device = Operation.make(["w"], mode: FileKind.characterDevice.rawValue, device: 0, owner: 0)
    #expect(try errorNumber { try fixture.tree().apply(device) } == .notPermitted)
  }

  @Test("a new directory does not show what a layer below has", arguments: [false, true])
  func opaque(usesMarkers: Bool) throws {
    let fixture = try UpperFixture()
    try (fixture.folder.folder("1/d") / "old").write("x")
    if usesMarkers {
      try (fixture.upper / ".wh.d").write("")
    } else {
      try (fixture.upper / "d").makeWhiteout()
    }
    let tree = try fixture.tree()
    try tree.apply(.makeDirectory(["d"], mode: 0o755, owner: 0))
    #expect(try tree.lookup(["d", "old"]) == nil)
    #expect(!(fixture.upper / ".wh.d").exists)
    #expect((fixture.upper / "d/.wh..wh..opq").exists == usesMarkers)
    #expect(try (fixture.upper / "d").attributeNames().contains("trusted.overlay.opaque") == !usesMarkers)
  }
}
