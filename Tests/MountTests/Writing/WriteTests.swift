import Glibc
import Posix
import TestSupport
import Testing

/// What a program changes in a writable mount is in the substitution, in overlayfs's format.
extension MountTests {
  @Suite struct WriteTests {
    @Test("a saved file lands in the substitution", .timeLimit(.minutes(1)))
    func saving() throws {
      try withWritable { mount, fixture in
        try (mount.point / "plain.txt").write("saved\n")
        try (mount.point / "only/deep/new.txt").write("new\n")
        try (mount.point / "folder/both.txt").replace("replaced by an editor\n")
        for root in [mount.point, fixture.substitution] {
          #expect(try (root / "plain.txt").readText() == "saved\n")
          #expect(try (root / "only/deep/new.txt").readText() == "new\n")
          #expect(try (root / "folder/both.txt").readText() == "replaced by an editor\n")
        }
        #expect(try (mount.point / "only/deep").names() == ["file.txt", "new.txt"])
        #expect(try (fixture.substitution / "only/deep").names() == ["new.txt"])
        #expect(try (fixture.substitution / "folder").names() == ["added.txt", "both.txt"])
        try expectUntouchedMain(fixture)
      }
    }

    @Test("a file that is only read or opened for writing is not copied", .timeLimit(.minutes(1)))
    func noCopy() throws {
      try withWritable { mount, fixture in
        func names() throws -> [ByteString] {
          try fixture.substitution.names().filter { !$0.hasPrefix(".wh.") }
        }
        let before = try names()
        try expectFixture(at: mount.point)
        try (mount.point / "plain.txt").withFile(O_RDWR) { _ in }
        try expectErrno(.fileExists) { try (mount.point / "only").makeDirectory() }
        try expectErrno(.directoryNotEmpty) { try (mount.point / "only").removeDirectory() }
        #expect(try names() == before)
        #expect(!(fixture.substitution / "only").exists)
      }
    }

    @Test("deleting a file of MAIN makes a whiteout that overlayfs understands", .timeLimit(.minutes(1)))
    func whiteout() throws {
      try withWritable { mount, fixture in
        for name in ["plain.txt", "folder/inner.txt", "replaced.txt", "link"] as [ByteString] {
          try (mount.point / name).remove()
          #expect(!(mount.point / name).exists, "\(name)")
          #expect((fixture.substitution / name).isWhiteout, "\(name)")
        }
        try (mount.point / "folder/added.txt").remove()
        #expect(!(fixture.substitution / "folder/added.txt").exists, "nothing has to be hidden")
        #expect(try mount.names() == ["folder", "only"])
        #expect(try (mount.point / "folder").names() == ["both.txt"])
        try expectUntouchedMain(fixture)
        try withOverlay(fixture) { overlay in
          let names = (try overlay.names(), try (overlay / "folder").names())
          #expect(names.0.filter { !$0.hasPrefix(".wh.") } == ["folder", "only"] && names.1 == ["both.txt"])
        }
        try (mount.point / "plain.txt").write("again\n")
        #expect(try (fixture.substitution / "plain.txt").readText() == "again\n")
      }
    }

    @Test("a folder that is made where one was deleted is empty and opaque", .timeLimit(.minutes(1)))
    func opaque() throws {
      try withWritable { mount, fixture in
        for name in ["only", "folder"] as [ByteString] {
          try Command("rm", "-r", (mount.point / name).text).check()
          #expect((fixture.substitution / name).isWhiteout)
          try (mount.point / name).makeDirectory()
          #expect(try (mount.point / name).names().isEmpty)
          #expect(
            try (fixture.substitution / name).attribute("trusted.overlay.opaque") == [UInt8(ascii: "y")])
          #expect(try !(mount.point / name).attributeNames().contains("trusted.overlay.opaque"))
        }
        try withOverlay(fixture) { overlay in
          let names = try (overlay / "only").names()
          #expect(names.isEmpty)
        }
        try (mount.point / "only/new").write("x")
        #expect(try (mount.point / "only").names() == ["new"])
        try expectUntouchedMain(fixture)
      }
    }

    @Test("a renamed file leaves a whiteout; a folder of MAIN is moved", .timeLimit(.minutes(1)))
    func renaming() throws {
      try withWritable { mount, fixture in
        try (mount.point / "plain.txt").rename(to: mount.point / "folder/moved.txt")
        #expect((fixture.substitution / "plain.txt").isWhiteout)
        #expect(try (fixture.substitution / "folder/moved.txt").readText() == "main's plain\n")
        try (mount.point / "only").rename(to: mount.point / "other")
        #expect(try (mount.point / "other/deep/file.txt").readText() == "deep\n")
        #expect(!(mount.point / "only").exists && (fixture.substitution / "only").isWhiteout)
        // It is no folder of MAIN any more.
        try (mount.point / "other").rename(to: mount.point / "only")
        #expect(try (mount.point / "only/deep/file.txt").readText() == "deep\n")
        #expect(try mount.names() == ["folder", "link", "only", "replaced.txt"])
        try withOverlay(fixture) { overlay in
          let names = (try (overlay / "only").names(), try (overlay / "folder").names())
          #expect(names == (["deep"], ["added.txt", "both.txt", "inner.txt", "moved.txt"]))
        }
        try expectUntouchedMain(fixture)
      }
    }

    @Test("a copy keeps owner, mode, times, attributes, ACL, capabilities and holes", .timeLimit(.minutes(1)))
    func copyUp() throws {
      let fixture = try Fixture()
      let source = fixture.main / "plain.txt"
      try source.withFile(O_RDWR) { try ByteString.put("end", in: $0, at: 3 << 20) }
      let acl = ACLValue.access(named: 1000)
      let capability = [UInt8]([1, 0, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
      try source.setOwner(1000, group: 100)
      try source.setAttribute("user.comment", Array("mine".utf8))
      try source.setAttribute("system.posix_acl_access", acl)
      try source.setAttribute("security.capability", capability)
      try source.setModified(TimeSpec(seconds: 1_234_567_890, nanoseconds: 123_456_789))
      try (fixture.main / "only").setMode(0o2711)
      try (fixture.main / "only").setOwner(7, group: 8)
      let before = try source.status()
      try withWritable(fixture: fixture) { mount, fixture in
        try (mount.point / "plain.txt").setAttribute("user.new", [1])
        let copy = fixture.substitution / "plain.txt"
        let after = try copy.status()
        #expect(after.owner == 1000 && after.group == 100 && after.permissions == before.permissions)
        #expect(after.modified == before.modified && after.size == before.size)
        #expect(after.blocks <= before.blocks + 64, "\(after.blocks) blocks, \(before.blocks) in MAIN")
        #expect(try copy.attribute("user.comment") == Array("mine".utf8))
        #expect(try copy.attribute("system.posix_acl_access") == acl)
        #expect(try copy.attribute("security.capability") == capability)
        #expect(try copy.read() == source.read())
        try (mount.point / "only/deep/file.txt").write("x")
        let folder = try (fixture.substitution / "only").status()
        #expect(folder.permissions == 0o2711 && folder.owner == 7 && folder.group == 8)
      }
    }

    @Test("without the option everything stays read-only", .timeLimit(.minutes(1)))
    func readOnly() throws {
      let fixture = try Fixture()
      let before = try fixture.substitution.names()
      try withMount(fixture.setup) { mount in
        let file = mount.point / "plain.txt"
        try expectErrno(.readOnlyFileSystem) { try file.write("x") }
        try expectErrno(.readOnlyFileSystem) { try file.remove() }
        try expectErrno(.readOnlyFileSystem) { try (mount.point / "new").makeDirectory() }
        try expectErrno(.readOnlyFileSystem) {
          try file.withFile(O_RDWR) { try ByteString.allocate($0, mode: 3, at: 0, count: 1) }
        }
        try expectErrno(.readOnlyFileSystem) { try file.exchange(with: mount.point / "replaced.txt") }
      }
      #expect(try fixture.substitution.names() == before)
    }
  }
}
