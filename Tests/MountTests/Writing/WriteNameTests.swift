import Glibc
import Posix
import TestSupport
import Testing

/// Names in a writable mount.
extension MountTests {
  @Suite struct WriteNameTests {
    @Test(
      "a file that has just appeared in a layer is opened by O_CREAT, unless with O_EXCL",
      .timeLimit(.minutes(1)))
    func appeared() throws {
      let script = """
        import os, sys
        path, flags = sys.argv[1], os.O_WRONLY | os.O_CREAT
        try: os.open(path, flags | os.O_EXCL)
        except FileExistsError: os.write(os.open(path, flags | os.O_APPEND), b'more')
        """
      // So that the kernel goes on to take the name to be free.
      try withWritable("cache=600") { mount, fixture in
        for options in [[], ["-B"]] as [[ByteString]] {
          let name = ByteString("new\(options.count)")
          #expect(!(mount.point / name).exists)
          try (fixture.substitution / name).write("layer's ")
          try Command(["python3"] + options + ["-c", ByteString(script), mount.point / name]).check()
          #expect(try (fixture.substitution / name).readText() == "layer's more")
        }
      }
    }

    @Test("making files and removing them takes no needless requests", .timeLimit(.minutes(1)))
    func requests() throws {
      try withWritable { mount, _ in
        let names = (0..<50).map { mount.point / ByteString("file\($0)") }
        for name in names { try name.write("x") }
        for name in names { try name.remove() }
        let requests = try mount.report().requests
        #expect(requests["RELEASE"] == 0 && requests["WRITE"] == 50)
        #expect(requests["CHANGE"] == 100, "\(requests)")
      }
    }

    @Test("names of 255 bytes", .timeLimit(.minutes(1)))
    func longNames() throws {
      let fixture = try Fixture()
      let (first, second) = (Self.name("a", 255), Self.name("b", 255))
      try (fixture.main / first).write("main's\n")
      try withWritable(fixture: fixture) { mount, fixture in
        try (mount.point / second).write("new\n")
        try (mount.point / first).write("changed\n")
        try (mount.point / first).rename(to: mount.point / Self.name("c", 255))
        #expect((fixture.substitution / first).isWhiteout)
        try (mount.point / first).makeDirectory()
        try (mount.point / first / second).write("inside\n")
        try (mount.point / first / second).remove()
        try (mount.point / first).removeDirectory()
        try (mount.point / second).remove()
        #expect(try mount.names().filter { $0.count == 255 } == [Self.name("c", 255)])
        try expectErrno(.fileNameTooLong) { try (mount.point / Self.name("d", 256)).write("x") }
        try expectErrno(.fileNameTooLong) { try (mount.point / Self.name("d", 256)).makeDirectory() }
      }
    }

    private static func name(_ letter: Character, _ count: Int) -> ByteString {
      ByteString(String(repeating: letter, count: count))
    }

    @Test("the names of whiteouts cannot be made", .timeLimit(.minutes(1)))
    func whiteoutNames() throws {
      try withWritable { mount, fixture in
        for name in [".wh.x", ".wh.plain.txt", ".wh..wh..opq", ".wh..wh.bundlefs-work"] as [ByteString] {
          let path = mount.point / name
          try expectErrno(.notPermitted, "create") { try path.write("x") }
          try expectErrno(.notPermitted, "mkdir") { try path.makeDirectory() }
          try expectErrno(.notPermitted, "symlink") { try path.makeLink(to: "x") }
          try expectErrno(.notPermitted, "link") { try path.makeHardLink(of: mount.point / "plain.txt") }
          try expectErrno(.notPermitted, "mknod") { try path.makeNode(mode: FileKind.fifo.rawValue | 0o600) }
          try expectErrno(.notPermitted, "rename") { try (mount.point / "plain.txt").rename(to: path) }
        }
        try expectErrno(.notPermitted, "a device 0:0") { try (mount.point / "null").makeWhiteout() }
        #expect((mount.point / "plain.txt").exists)
        try (mount.point / ".whx").write("an ordinary name")
        try (mount.point / ".wh").write("an ordinary name")
      }
    }

    @Test("the control file can neither be removed nor replaced", .timeLimit(.minutes(1)))
    func controlFile() throws {
      try withWritable { mount, fixture in
        let control = mount.point / ".routes"
        try expectRefused("unlink") { try control.remove() }
        try expectRefused("rename") { try control.rename(to: mount.point / "x") }
        try expectRefused("rename over") { try (mount.point / "plain.txt").rename(to: control) }
        try expectRefused("exchange") { try (mount.point / "plain.txt").exchange(with: control) }
        try expectRefused("link") { try (mount.point / "x").makeHardLink(of: control) }
        try expectRefused("chmod") { try control.setMode(0o600) }
        try expectRefused("setxattr") { try control.setAttribute("user.x", [1]) }
        try mount.writeControl("route Any s:Text\nx:hello\n")
        #expect(try control.readText().contains("hello"))
        #expect(!(fixture.substitution / ".routes").exists)
        try expectFixture(at: mount.point)
      }
    }

    private func expectRefused(
      _ subject: Comment, location: SourceLocation = #_sourceLocation, _ body: () throws -> Void
    ) throws {
      let errors: [Errno?] = [
        .notPermitted, .permissionDenied, .resourceBusy, .readOnlyFileSystem, .notSupported,
      ]
      let seen = try errorNumber(of: body)
      #expect(errors.contains(seen), "\(subject): \(String(describing: seen))", sourceLocation: location)
    }

    @Test("a removed directory in which a program stands", .timeLimit(.minutes(1)))
    func removedDirectory() throws {
      try withWritable { mount, fixture in
        for name in ["folder", "only/deep", "new"] as [ByteString] {
          let path = mount.point / name
          if !path.exists { try path.makeDirectory() }
          let inode = try path.status().inode
          for entry in try path.names() { try (path / entry).remove() }
          try path.withOpen(O_RDONLY | O_DIRECTORY) { directory in
            try path.removeDirectory()
            try path.makeDirectory()
            let status = try ByteString.status(of: directory)
            #expect(status.links == 0 && status.inode == inode, "\(name): \(status)")
            let inside = ByteString("/proc/self/fd/\(directory)/x")
            try expectErrno(.noSuchFileOrDirectory, "\(name)") { try inside.write("x") }
          }
          #expect(try path.names() == [])
        }
      }
    }

    @Test(
      "the attributes of a removed directory can be changed", .timeLimit(.minutes(1)),
      arguments: ["cache=coherent", "cache=none"] as [ByteString])
    func removedDirectoryAttributes(option: ByteString) throws {
      try withWritable(option) { mount, fixture in
        try (fixture.main / "empty").makeDirectory()
        let mode = try (fixture.main / "empty").status().permissions
        for name in ["empty", "new"] as [ByteString] {
          let path = mount.point / name
          if !path.exists { try path.makeDirectory() }
          try path.withOpen(O_RDONLY | O_DIRECTORY) { directory in
            try path.removeDirectory()
            let inside = ByteString("/proc/self/fd/\(directory)/.")
            try inside.setAttribute("user.a", Array("value".utf8))
            #expect(fchmod(directory, 0o2711) == 0 && fchown(directory, 5, 6) == 0 && fsync(directory) == 0)
            let status = try ByteString.status(of: directory)
            #expect(
              status.permissions == 0o2711 && status.owner == 5 && status.group == 6 && status.links == 0)
            #expect(try inside.attribute("user.a") == Array("value".utf8), "\(name)")
          }
          #expect(!path.exists, "\(name)")
        }
        #expect(try (fixture.main / "empty").status().permissions == mode)
        #expect(try fixture.substitution.names().allSatisfy { $0 != "new" })
      }
    }

    @Test(
      "a file is opened or made while its name comes and goes in the upper layer", .timeLimit(.minutes(1)))
    func openWhileNameChanges() throws {
      let script = """
        import os, sys, time
        mount, layer = sys.argv[1:]
        end = time.time() + 4
        if os.fork() == 0:
            while time.time() < end:
                for change in (lambda path: os.close(os.open(path, os.O_CREAT | os.O_WRONLY)), os.unlink):
                    try: change(layer + "/name")
                    except FileNotFoundError: pass
            os._exit(0)
        other = os.fork()
        while time.time() < end:
            os.close(os.open(mount + "/name", os.O_CREAT | os.O_WRONLY))
        if other == 0: os._exit(0)
        if os.waitpid(other, 0)[1]: sys.exit(1)
        os.wait()
        """
      try withWritable { mount, fixture in
        try Command(["python3", "-c", ByteString(script), mount.point, fixture.substitution]).check(
          timeout: 40)
      }
    }

    @Test("attributes of overlayfs cannot be set", .timeLimit(.minutes(1)))
    func overlayAttributes() throws {
      try withWritable { mount, fixture in
        for name in ["trusted.overlay.opaque", "user.overlay.opaque", "trusted.overlay.redirect"]
          as [ByteString]
        {
          try expectErrno(.notPermitted, "\(name)") {
            try (mount.point / "folder").setAttribute(name, [UInt8(ascii: "y")])
          }
        }
        #expect(try (mount.point / "folder/inner.txt").readText() == "main's inner\n")
      }
    }
  }
}
