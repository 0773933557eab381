import Glibc
import Posix
import TestSupport
import Testing

/// Other users in a writable mount with `allow_other`.
extension MountTests {
  @Suite struct WritePermissionTests {
    private static let user: UInt32 = 1000

    @Test("another user may change what the modes allow", .timeLimit(.minutes(1)))
    func modes() throws {
      let fixture = try Fixture()
      try (fixture.main / "open.txt").write("open\n")
      try (fixture.main / "open.txt").setMode(0o666)
      try withWritable("allow_other", fixture: fixture) { mount, fixture in
        try asFileSystemUser(Self.user) {
          let file = mount.point / "plain.txt"
          try expectErrno(.permissionDenied, "write") { try file.overwrite([1], at: 0) }
          try expectErrno(.permissionDenied, "create") { try (mount.point / "new").write("x") }
          try expectErrno(.permissionDenied, "unlink") { try file.remove() }
          try expectErrno(.permissionDenied, "mkdir") { try (mount.point / "new").makeDirectory() }
          try expectErrno(.permissionDenied, "rename") { try file.rename(to: mount.point / "new") }
          try expectErrno(.notPermitted, "chmod") { try file.setMode(0o777) }
          try expectErrno(.notPermitted, "chown") { try file.setOwner(Self.user, group: Self.user) }
          try (mount.point / "open.txt").overwrite(Array("O".utf8), at: 0)
        }
        #expect(try (fixture.substitution / "open.txt").readText() == "Open\n")
        #expect(try (fixture.substitution / "open.txt").status().owner == 0)
        #expect(!(fixture.substitution / "plain.txt").exists)
        try expectFixtureFiles(mount)
      }
    }

    private func expectFixtureFiles(_ mount: Mount) throws {
      for (path, text) in Fixture.content { #expect(try (mount.point / path).readText() == text) }
    }

    @Test("new entries belong to the caller, with its umask", .timeLimit(.minutes(1)))
    func ownership() throws {
      let fixture = try Fixture()
      for name in ["folder", "only"] as [ByteString] { try (fixture.main / name).setMode(0o777) }
      try (fixture.substitution / "folder").setMode(0o777)
      try withWritable("allow_other", fixture: fixture) { mount, fixture in
        let script = """
          cd "$1" && umask 027 && echo x > file && mkdir folder && mkfifo pipe && ln -s file link && ln file second
          """
        for name in ["folder", "only"] as [ByteString] {
          try Command.shell(script, mount.point / name).asUser(Self.user).check()
          for (entry, mode) in [("file", 0o640), ("folder", 0o750), ("pipe", 0o640), ("link", 0o777)] {
            for root in [mount.point, fixture.substitution] {
              let status = try (root / name / ByteString(entry)).status()
              #expect(status.owner == Self.user && status.group == Self.user, "\(name)/\(entry)")
              #expect(status.permissions == mode, "\(name)/\(entry): \(status)")
            }
          }
          #expect(try (mount.point / name / "second").status().links == 2)
        }
      }
    }

    @Test("a sticky folder", .timeLimit(.minutes(1)))
    func sticky() throws {
      let fixture = try Fixture()
      try (fixture.main / "only").setMode(0o1777)
      try (fixture.main / "only/roots").write("x")
      try (fixture.main / "only/own").write("x")
      try (fixture.main / "only/own").setOwner(Self.user, group: Self.user)
      try withWritable("allow_other", fixture: fixture) { mount, _ in
        let folder = mount.point / "only"
        try asFileSystemUser(Self.user) {
          try expectErrno(.notPermitted) { try (folder / "roots").remove() }
          try expectErrno(.notPermitted) { try (folder / "roots").rename(to: folder / "x") }
          try expectErrno(.notPermitted) { try (folder / "own").rename(to: folder / "roots") }
          try (folder / "own").rename(to: folder / "renamed")
          try (folder / "renamed").remove()
        }
        #expect(try folder.names() == ["deep", "roots"])
      }
    }

    @Test("a folder with the set-group-ID bit gives its group", .timeLimit(.minutes(1)))
    func setGroupID() throws {
      let fixture = try Fixture()
      try (fixture.main / "only").setOwner(0, group: 500)
      try (fixture.main / "only").setMode(0o2777)
      try withWritable("allow_other", fixture: fixture) { mount, _ in
        let folder = mount.point / "only"
        try asFileSystemUser(Self.user) {
          try (folder / "file").write("x")
          try (folder / "new").makeDirectory()
          try (folder / "deep/file.txt").parent.parent.call("access") { access($0, F_OK) }
        }
        // One that is opaque, too.
        try Command("rm", "-r", (folder / "deep").text).check()
        try asFileSystemUser(Self.user) { try (folder / "deep").makeDirectory() }
        for (name, bit) in [("file", 0), ("new", 0o2000), ("deep", 0o2000)] as [(ByteString, UInt32)] {
          let status = try (folder / name).status()
          #expect(status.owner == Self.user && status.group == 500, "\(name): \(status)")
          #expect(status.permissions & 0o2000 == bit, "\(name): \(status)")
        }
      }
    }

    @Test("a default ACL replaces the umask, as on a plain file system", .timeLimit(.minutes(1)))
    func defaultACL() throws {
      let fixture = try Fixture()
      let plain = try fixture.folder.folder("plain")
      for folder in [fixture.main / "only", plain] {
        try folder.setMode(0o777)
        try folder.setAttribute("system.posix_acl_default", ACLValue.access(named: 1234))
      }
      try withWritable("allow_other", fixture: fixture) { mount, _ in
        let script = "cd \"$1\" && umask 077 && echo x > file && mkdir folder"
        for folder in [mount.point / "only", plain] {
          try Command.shell(script, folder).asUser(Self.user).check()
        }
        for name in ["file", "folder"] as [ByteString] {
          let (seen, expected) = (mount.point / "only" / name, plain / name)
          #expect(try seen.status().permissions == expected.status().permissions, "\(name)")
          for attribute in try expected.attributeNames() where attribute.hasPrefix("system.") {
            #expect(try seen.attribute(attribute) == expected.attribute(attribute), "\(attribute) of \(name)")
          }
        }
        #expect(try (mount.point / "only/file").attribute("system.posix_acl_access").count > 4)
      }
    }

    @Test("a write by another user clears the set-user-ID bit", .timeLimit(.minutes(1)))
    func setUserID() throws {
      let changes: [(String, (ByteString) throws -> Void)] = [
        ("write", { try $0.overwrite([1], at: 0) }),
        ("append", { try $0.withFile(O_WRONLY | O_APPEND) { try ByteString.put("x", in: $0) } }),
        ("truncate", { try $0.setSize(1) }),
        (
          "fallocate",
          { try $0.withFile(O_WRONLY) { try ByteString.allocate($0, mode: 0, at: 0, count: 9000) } }
        ),
      ]
      let fixture = try Fixture()
      for (name, _) in changes {
        for layer in [fixture.main, fixture.substitution] {
          let path = layer / ByteString("\(name) \(layer == fixture.main)")
          try path.write("program")
          try path.setMode(0o6777)
        }
      }
      try withWritable("allow_other", fixture: fixture) { mount, _ in
        for (name, change) in changes {
          for isMain in [true, false] {
            let path = mount.point / ByteString("\(name) \(isMain)")
            try change(path)
            #expect(try path.status().permissions == 0o6777, "root's \(path)")
            try asFileSystemUser(Self.user) { try change(path) }
            #expect(try path.status().permissions == 0o777, "\(path)")
          }
        }
      }
    }

    @Test("set-ID bits that come from below between two writes are cleared", .timeLimit(.minutes(1)))
    func setIDFromBelow() throws {
      let fixture = try Fixture()
      try (fixture.substitution / "file").write("text")
      try (fixture.substitution / "file").setMode(0o777)
      try withWritable("allow_other", fixture: fixture) { mount, _ in
        let path = mount.point / "file"
        try path.overwrite([1], at: 0)
        // The daemon still has it open.
        try (fixture.substitution / "file").setMode(0o6777)
        try mount.barrier()
        try asFileSystemUser(Self.user) { try path.overwrite([2], at: 1) }
        #expect(try path.status().permissions == 0o777)
        #expect(try (fixture.substitution / "file").status().permissions == 0o777)
      }
    }

    @Test("an unprivileged user's own mount", .timeLimit(.minutes(1)))
    func unprivileged() throws {
      let fixture = try Fixture()
      try withOpenDevice {
        var setup = try UnprivilegedTests().userSetup(fixture)
        setup.options = ["writable"]
        try withMount(setup) { mount in
          let script = """
            cd "$1" && echo new > new.txt && echo changed >> plain.txt && rm replaced.txt && rm -r only && mkdir only \
            && mv folder/inner.txt only/ && ls -A only && cat plain.txt
            """
          let outcome = try Command.shell(script, mount.point).asUser(UnprivilegedTests.nobody).check()
          #expect(outcome.outputText == "inner.txt\nmain's plain\nchanged\n")
        }
        let again = try withMount(setup) { mount in
          try Command.shell("cd \"$1\" && find . | sort", mount.point)
            .asUser(UnprivilegedTests.nobody).check().outputText
        }
        let expected = [
          ".", "./folder", "./folder/added.txt", "./folder/both.txt", "./link", "./new.txt", "./only",
          "./only/inner.txt", "./plain.txt",
        ]
        #expect(again.split(separator: "\n").map { String($0) } == expected)
      }
      try expectUntouchedMain(fixture)
    }
  }
}
