import Glibc
import Posix
import TestSupport
import Testing

/// A substitution that becomes full.
extension MountTests {
  @Suite(.enabled(if: TmpfsSupport.keepsUserAttributes)) struct WriteSpaceTests {
    /// A fixture with a substitution of few bytes.
    private func withSmallDisk(_ size: String, _ body: (Mount, Fixture) throws -> Void) throws {
      let fixture = try Fixture()
      try Command("mount", "-t", "tmpfs", "-o", "size=\(size)", "tmpfs", fixture.substitution.text).check()
      try (fixture.main / "large").write([UInt8](repeating: 7, count: 3 << 20))
      try withWritable(fixture: fixture, body)
    }

    /// Writes until there is no space.
    /// - Returns: how many bytes were written.
    private func fill(_ path: ByteString, by count: Int = 16 << 10) throws -> Int {
      let chunk = [UInt8](repeating: 1, count: count)
      var total = 0
      try expectErrno(.noSpace) {
        try path.withFile(O_WRONLY | O_CREAT | O_APPEND) { file in
          while total < 64 << 20 {
            let count = write(file, chunk, chunk.count)
            if count < 0 { throw DiskError("write", path, .current) }
            total += count
          }
        }
      }
      return total
    }

    @Test("the writer gets ENOSPC, and what was written stays", .timeLimit(.minutes(1)))
    func writing() throws {
      try withSmallDisk("1m") { mount, fixture in
        try (mount.point / "plain.txt").write("kept\n")
        let count = try fill(mount.point / "filler")
        #expect(count > 512 << 10)
        #expect(try (mount.point / "filler").status().size == count)
        #expect(try (mount.point / "filler").read() == (fixture.substitution / "filler").read())
        #expect(try (mount.point / "plain.txt").readText() == "kept\n")
        try (mount.point / "filler").remove()
        // The kernel forgets the file soon.
        let next = [UInt8](repeating: 2, count: 512 << 10)
        #expect(eventually(within: 10) { (try? (mount.point / "next").write(next)) != nil })
        #expect(try (mount.point / "next").read() == next)
      }
    }

    @Test("a file that cannot be copied stays as it is, and nothing is left over", .timeLimit(.minutes(1)))
    func copyUp() throws {
      try withSmallDisk("2m") { mount, fixture in
        let large = mount.point / "large"
        let before = try large.status()
        try expectErrno(.noSpace, "write") { try large.overwrite([1], at: 0) }
        try expectErrno(.noSpace, "chmod") { try large.setMode(0o600) }
        try expectErrno(.noSpace, "rename") { try large.rename(to: mount.point / "other") }
        #expect(try large.status() == before)
        #expect(try large.read() == [UInt8](repeating: 7, count: 3 << 20))
        #expect(!(fixture.substitution / "large").exists)
        // All the space is free.
        try (mount.point / "next").write([UInt8](repeating: 2, count: 1 << 20))
        // A truncated file is not copied whole.
        try large.write("short\n")
        #expect(try large.readText() == "short\n")
        #expect(try (fixture.main / "large").status().size == 3 << 20)
      }
    }

    @Test(
      "a full substitution refuses new entries and removals that need a whiteout", .timeLimit(.minutes(1)))
    func noInodes() throws {
      let fixture = try Fixture()
      try Command("mount", "-t", "tmpfs", "-o", "nr_inodes=12", "tmpfs", fixture.substitution.text).check()
      try withWritable(fixture: fixture) { mount, fixture in
        var count = 0
        let error = try errorNumber {
          while count < 20 {
            try (mount.point / ByteString("new\(count)")).write("x")
            count += 1
          }
        }
        #expect(error == .noSpace && count > 2, "\(count): \(String(describing: error))")
        try expectErrno(.noSpace, "unlink") { try (mount.point / "plain.txt").remove() }
        try expectErrno(.noSpace, "write") { try (mount.point / "plain.txt").overwrite([1], at: 0) }
        #expect(try (mount.point / "plain.txt").readText() == "main's plain\n")
        for index in 0..<count { try (mount.point / ByteString("new\(index)")).remove() }
        #expect(eventually(within: 10) { (try? (mount.point / "plain.txt").remove()) != nil })
        #expect(!(mount.point / "plain.txt").exists)
      }
    }

    /// Mounts a file system with few inodes.
    private func mountFewInodes(_ type: String, at folder: ByteString, _ image: ByteString) throws {
      if type == "tmpfs" {
        try Command("mount", "-t", "tmpfs", "-o", "nr_inodes=40", "tmpfs", folder.text).check()
        return
      }
      let script = """
        truncate -s 4M "$1" && mkfs.ext4 -q -N 48 -O ^has_journal "$1" && mount -o loop "$1" "$2"
        """
      try Command.shell(script, image, folder).check()
    }

    @Test(
      "without a free inode, what was copied up can be removed", .timeLimit(.minutes(1)),
      arguments: ["tmpfs", "ext4"])
    func noInodesForWhiteouts(type: String) throws {
      let fixture = try Fixture()
      try mountFewInodes(type, at: fixture.substitution, fixture.folder / "image")
      let names = (0..<4).map { ByteString("file\($0)") }
      for name in names { try (fixture.main / name).write("x") }
      try (fixture.main / "folder2").makeDirectory()
      try withWritable(fixture: fixture) { mount, fixture in
        for name in names { try (mount.point / name).setMode(0o600) }
        try (mount.point / "folder2").setMode(0o700)
        let error = try errorNumber {
          for index in 0..<4000 { try (mount.point / ByteString("new\(index)")).write("") }
        }
        #expect(error == .noSpace)
        for name in names { try (mount.point / name).remove() }
        try (mount.point / "folder2").removeDirectory()
        for name in names + ["folder2"] {
          #expect(!(mount.point / name).exists && (fixture.substitution / name).isWhiteout, "\(name)")
        }
        if type == "ext4" { try (mount.point / "plain.txt").remove() }
        try (mount.point / "new0").remove()
        #expect(eventually(within: 10) { (try? (mount.point / "again").write("")) != nil })
      }
    }

    /// Mounts a file system of 16 MiB, of which a fifth is reserved for root, and fills the rest as a user.
    private func withReserve(_ body: (Mount, Fixture) throws -> Void) throws {
      let fixture = try Fixture()
      let script = #"truncate -s 16M "$1" && mkfs.ext4 -q -m 20 "$1" && mount -o loop "$1" "$2""#
      try Command.shell(script, fixture.folder / "image", fixture.substitution).check()
      try (fixture.main / "only").setMode(0o777)
      for name in ["small", "large"] as [ByteString] {
        try (fixture.main / name).write([UInt8](repeating: 7, count: name == "small" ? 100 : 1 << 20))
        try (fixture.main / name).setMode(0o666)
        try (fixture.main / name).setOwner(1000, group: 1000)
      }
      try withWritable("allow_other", fixture: fixture) { mount, fixture in
        try asFileSystemUser(1000) {
          for count in [16 << 10, 1024] { _ = try fill(mount.point / "only/filler", by: count) }
          try (mount.point / "only/empty").withFile(O_RDWR | O_CREAT) { _ in }
        }
        try body(mount, fixture)
      }
    }

    /// Expects most of the space that is reserved to be free.
    private func expectReserve(_ fixture: Fixture) throws {
      var status = statvfs()
      try fixture.substitution.call("statvfs") { statvfs($0, &status) }
      #expect(status.f_bfree * status.f_frsize > 2 << 20)
    }

    @Test("what is reserved for root stays for root, whatever users do", .timeLimit(.minutes(1)))
    func reserve() throws {
      try withReserve { mount, fixture in
        let chunk = [UInt8](repeating: 1, count: 256 << 10)
        let empty = mount.point / "only/empty"
        try asFileSystemUser(1000) {
          for name in ["only/empty", "small", "large"] as [ByteString] {
            try expectErrno(.noSpace, "write") { try (mount.point / name).overwrite(chunk, at: 0) }
          }
          try empty.withFile(O_RDWR) { file in
            try expectErrno(.noSpace, "fallocate") {
              try ByteString.allocate(file, mode: 0, at: 0, count: 1 << 20)
            }
          }
          try expectErrno(.noSpace, "mkdir") {
            for index in 0..<8 { try (mount.point / ByteString("only/new\(index)")).makeDirectory() }
          }
          try expectErrno(.noSpace, "setxattr") {
            for index in 0..<3 {
              try empty.setAttribute(ByteString("user.\(index)"), [UInt8](repeating: 1, count: 1000))
            }
          }
        }
        try expectReserve(fixture)
        try (mount.point / "roots").write(chunk)
        #expect(try (fixture.substitution / "roots").read() == chunk)
        try empty.overwrite(chunk, at: 0)
        try asFileSystemUser(1000) {
          try expectErrno(.noSpace, "after root") { try empty.overwrite(chunk, at: chunk.count) }
        }
      }
    }

    @Test(
      "what a user writes to a mapping takes nothing from root's reserve", .timeLimit(.minutes(1)),
      arguments: ["only/empty", "large"] as [ByteString])
    func mappedReserve(name: ByteString) throws {
      try withReserve { mount, fixture in
        let size = 1 << 20
        try asFileSystemUser(1000) {
          try (mount.point / name).withFile(O_RDWR) { file in
            if name != "large" { #expect(ftruncate(file, off_t(size)) == 0) }
            let memory = mmap(nil, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
            memory?.initializeMemory(as: UInt8.self, repeating: 1, count: size)
            munmap(memory, size)
            #expect(fsync(file) == -1 && errno == ENOSPC)
          }
        }
        try expectReserve(fixture)
      }
    }

    @Test(
      "the processes that write have given up CAP_SYS_RESOURCE, by which quotas are ignored",
      .timeLimit(.minutes(1)), .enabled(if: hasResourceCapability("/proc/self")))
    func quotas() throws {
      try withWritable { mount, _ in
        try (mount.point / "plain.txt").write("x")
        let first = mount.worker
        try expectNoResourceCapability(of: first)
        kill(first, SIGKILL)
        try (mount.point / "plain.txt").write("y")
        try #require(eventually(within: 20) { ![first, mount.process.pid].contains(mount.worker) })
        try (mount.point / "plain.txt").write("z")
        try expectNoResourceCapability(of: mount.worker)
      }
    }

    private func expectNoResourceCapability(of process: pid_t) throws {
      let threads = ByteString("/proc/\(process)/task")
      let requestThreads = try threads.names().filter {
        try (threads / $0 / "comm").readText().hasPrefix("request ")
      }
      #expect(!requestThreads.isEmpty)
      for thread in requestThreads { #expect(!Self.hasResourceCapability(threads / thread), "\(thread)") }
    }

    private static func hasResourceCapability(_ thread: ByteString) -> Bool {
      let status = (try? (thread / "status").readText()) ?? ""
      let field = status.split(separator: "\n").first { $0.hasPrefix("CapEff:\t") }
      return UInt64(field?.dropFirst(8) ?? "", radix: 16).map { $0 >> 24 & 1 == 1 } ?? true
    }
  }
}
