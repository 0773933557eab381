import Posix
import TestSupport
import Testing

/// A user who may write to one layer, opens a file of his own there and takes it away: the descriptor must not lead to
/// another user's file of that name.
extension MountTests {
  @Suite struct FormerFileRightsTests {
    private static let user: UInt32 = 1000

    /// Opens the user's file, replaces it, and does what only its owner may do.
    ///
    /// Arguments: the mount, the user's layer, how the file loses its name, the operation, and how often. MAIN has files
    /// `tool-N` of root's. Prints what it has read of them.
    private static let attack = """
      import ctypes, os, sys, mmap
      mount, layer, way, operation, count = sys.argv[1:6]
      libc = ctypes.CDLL(None, use_errno=True)
      def operate(fd, path):
          if operation == "chmod": os.fchmod(fd, 0o4777)
          elif operation == "read": print(os.pread(fd, 100, 0).decode())
          elif operation == "mmap":
              print(bytes(mmap.mmap(fd, 5, prot=mmap.PROT_READ)[:5]).decode())
          elif operation == "truncate": os.ftruncate(fd, 1)
          elif operation == "allocate":
              if libc.fallocate(fd, 0, ctypes.c_long(0), ctypes.c_long(100)): raise OSError(ctypes.get_errno(), "")
          elif operation == "append": os.write(fd, b"mine")
          elif operation == "xattr": os.setxattr(fd, "user.mine", b"1")
          elif operation == "times": os.utime(fd, (1, 1))
          elif operation == "chown": os.fchown(fd, -1, os.getgid())
          elif operation == "renews": os.fchown(fd, -1, -1)
      for number in range(int(count)):
          own, path = f"{layer}/tool-{number}", f"{mount}/tool-{number}"
          # 64 bytes, so that the kernel lets a mapping of the file be read.
          open(own, "w").write("x" * 64)
          flags = os.O_RDWR | (os.O_APPEND if operation == "append" else 0)
          while True:
              try:
                  fd = os.open(path, flags)
                  break
              except OSError: pass
          if way == "unlink": os.unlink(own)
          else: os.rename(f"{layer}/other-{number}", own)
          try: operate(fd, path)
          except (OSError, ValueError): pass
          os.close(fd)
      """

    private static let operations = [
      "chmod", "read", "truncate", "allocate", "append", "xattr", "times", "chown", "renews",
    ]
    private static let rounds = 15

    @Test(
      "a descriptor of a file that was taken away reaches no other user's", .timeLimit(.minutes(2)),
      arguments: operations)
    func taken(_ operation: String) throws {
      try withUsersLayer { mount, fixture, layer in
        for number in 0..<Self.rounds {
          let file = fixture.main / ByteString("tool-\(number)")
          try file.write("secret of root's, which is longer than what the user writes: \(number)\n")
          try file.setMode(0o600)
        }
        try attack("unlink", operation, mount, layer)
        // The mount learns of what happens in a layer by events.
        try mount.barrier()
        for number in 0..<Self.rounds {
          let name = ByteString("tool-\(number)")
          for root in [fixture.main, mount.point] { try expectSecret(root / name, number) }
          let copy = fixture.substitution / name
          if copy.exists { try expectSecret(copy, number) }
        }
      }
    }

    @Test(
      "a file that is renamed into place is not read by a descriptor of the former one",
      .timeLimit(.minutes(2)),
      arguments: [true, false])
    func renamed(isWritable: Bool) throws {
      try withUsersLayer(isWritable: isWritable) { mount, _, layer in
        for number in 0..<Self.rounds {
          // The folder is the user's, who can rename what is in it.
          let other = layer / ByteString("other-\(number)")
          try other.write("secret")
          try other.setMode(0o600)
        }
        try attack("rename", "read", mount, layer)
      }
    }

    @Test("a descriptor of a folder that was taken away lists no other user's", .timeLimit(.minutes(2)))
    func folders() throws {
      let script = """
        import os, sys
        mount, layer, count = sys.argv[1:4]
        for number in range(int(count)):
            name = f"folder-{number}"
            os.mkdir(f"{layer}/{name}")
            while True:
                try:
                    fd = os.open(f"{mount}/{name}", os.O_RDONLY | os.O_DIRECTORY)
                    os.stat(".", dir_fd=fd)
                    break
                except OSError: pass
            os.rmdir(f"{layer}/{name}")
            # Until then the folder is the user's, and shows what is in root's below it.
            while os.stat(f"{mount}/{name}").st_uid != 0: pass
            for attempt in range(20):
                try: print(os.listdir(fd))
                except OSError: pass
                try: print(open(os.open("secret", os.O_RDONLY, dir_fd=fd)).read())
                except OSError: pass
                try:
                    os.mkdir(f"own-{attempt}", dir_fd=fd)
                    if os.stat(".", dir_fd=fd).st_uid != os.getuid(): print("secret: made a folder")
                except OSError: pass
        """
      try withUsersLayer { mount, fixture, layer in
        for number in 0..<Self.rounds {
          let folder = fixture.main / ByteString("folder-\(number)")
          try folder.makeDirectory()
          try (folder / "secret").write("secret")
          try folder.setMode(0o700)
        }
        let outcome = try Command([
          "/usr/bin/python3", "-c", ByteString(script), mount.point, layer, ByteString("\(Self.rounds)"),
        ]).asUser(Self.user).run(timeout: 60)
        #expect(
          outcome.status == 0 && !outcome.outputText.contains("secret"),
          "\(outcome.outputText)\(outcome.errorText)")
        for number in 0..<Self.rounds {
          #expect(try (fixture.main / ByteString("folder-\(number)")).names() == ["secret"])
          let copy = fixture.substitution / ByteString("folder-\(number)")
          if copy.exists, try copy.status().owner == 0 { #expect(try copy.names() == []) }
        }
      }
    }

    @Test("a file that its owner replaces by another is followed", .timeLimit(.minutes(1)))
    func replacedByOwner() throws {
      let script = """
        import os, sys
        mount, layer, count = sys.argv[1:4]
        for number in range(int(count)):
            own = f"{layer}/own-{number}"
            open(own, "w").write("former")
            while True:
                try:
                    fd = os.open(f"{mount}/own-{number}", os.O_RDONLY)
                    break
                except OSError: pass
            open(own + ".new", "w").write("latter")
            os.rename(own + ".new", own)
            print(os.pread(fd, 6, 0).decode())
        """
      try withUsersLayer { mount, _, layer in
        let outcome = try Command([
          "/usr/bin/python3", "-c", ByteString(script), mount.point, layer, ByteString("\(Self.rounds)"),
        ]).asUser(Self.user).run(timeout: 60)
        #expect(outcome.status == 0, "\(outcome.outputText)\(outcome.errorText)")
        let lines = outcome.outputText.split(separator: "\n")
        #expect(lines.count == Self.rounds && lines.allSatisfy { $0 == "former" || $0 == "latter" })
      }
    }

    // MARK: - Support

    /// Mounts with a layer that belongs to the user, below the upper layer.
    private func withUsersLayer(
      isWritable: Bool = true, _ body: (Mount, Fixture, ByteString) throws -> Void
    ) throws {
      let fixture = try Fixture()
      try fixture.folder.path.setMode(0o755)
      let layer = try fixture.folder.folder("users")
      try layer.setOwner(Self.user, group: Self.user)
      var setup = fixture.setup("allow_other")
      if isWritable { setup.options.append("writable") }
      setup.substitutions.append(layer)
      try withMount(setup) { try body($0, fixture, layer) }
    }

    private func attack(_ way: String, _ operation: String, _ mount: Mount, _ layer: ByteString) throws {
      let arguments = [way, operation, "\(Self.rounds)"].map { ByteString($0) }
      let outcome = try Command(
        ["/usr/bin/python3", "-c", ByteString(Self.attack), mount.point, layer] + arguments
      ).asUser(Self.user).run(timeout: 60)
      #expect(
        outcome.status == 0 && !outcome.outputText.contains("secret"),
        "\(outcome.outputText)\(outcome.errorText)")
    }

    private func expectSecret(_ file: ByteString, _ number: Int) throws {
      let status = try file.status()
      #expect(status.owner == 0 && status.group == 0 && status.permissions == 0o600, "\(file): \(status)")
      #expect(status.modified.seconds > 1, "\(file)")
      let text = try file.readText()
      #expect(
        text == "secret of root's, which is longer than what the user writes: \(number)\n", "\(file): \(text)"
      )
    }
  }
}
