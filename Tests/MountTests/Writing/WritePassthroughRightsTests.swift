import Glibc
import Posix
import TestSupport
import Testing

/// `-o writable,passthrough`: what a program may do to a file that the kernel writes to itself.
extension MountTests {
  @Suite struct WritePassthroughRightsTests {
    private func withPassthrough(
      _ options: ByteString..., fixture: Fixture? = nil,
      body: (_ mount: Mount, _ fixture: Fixture) throws -> Void
    ) throws {
      let fixture = try fixture ?? Fixture()
      var setup = fixture.setup
      setup.options = ["writable", "passthrough"] + options
      try withMount(setup) { try body($0, fixture) }
    }

    private func opened(_ mount: Mount) throws -> Int { try #require(try mount.report().passthrough).opened }

    /// O_DIRECT on x86-64 and 64-bit ARM.
    private static let direct: CInt = {
      #if arch(arm64)
      0o200000
      #else
      0o40000
      #endif
    }()

    private func setFlag(_ flag: String, of path: ByteString) throws {
      try Command("chattr", flag, path.text).check()
    }

    @Test("a set-user-ID bit that the kernel has not seen goes at a write", .timeLimit(.minutes(1)))
    func unseenSetUserID() throws {
      try withPassthrough("allow_other") { mount, fixture in
        let (path, below) = (mount.point / "program", fixture.substitution / "program")
        try path.write("text")
        try path.setOwner(1000, group: 1000)
        try path.setMode(0o666)
        try asFileSystemUser(1001) {
          try path.withFile(O_WRONLY) { file in
            try ByteString.put("a", in: file, at: 0)
            try Command("chmod", "4755", below.text).check()
            try ByteString.put("evil", in: file, at: 0)
            #expect(try below.status().permissions == 0o755)
          }
        }
      }
    }

    @Test("a set-user-ID program of root's keeps its bit when root writes to it", .timeLimit(.minutes(1)))
    func setUserIDOfRoot() throws {
      try withPassthrough { mount, fixture in
        let path = mount.point / "program"
        try path.write("text")
        #expect(try eventually(within: 10) { try mount.report().passthrough?.open == 0 })
        try path.setMode(0o4755)
        try path.withFile(O_WRONLY) { try ByteString.put("more", in: $0, at: 0) }
        #expect(try path.status().permissions == 0o4755)
        #expect(try (fixture.substitution / "program").readText() == "more")
      }
    }

    @Test("the space reserved for root is not taken by writing to root's file", .timeLimit(.minutes(1)))
    func reserve() throws {
      let fixture = try Fixture()
      let script = #"truncate -s 16M "$1" && mkfs.ext4 -q -m 20 "$1" && mount -o loop "$1" "$2""#
      try Command.shell(script, fixture.folder / "image", fixture.substitution).check()
      try withPassthrough("allow_other", fixture: fixture) { mount, fixture in
        let path = mount.point / "log"
        try path.write("")
        try path.setMode(0o666)
        let chunk = [UInt8](repeating: 1, count: 16 << 10)
        try asFileSystemUser(1000) {
          try path.withFile(O_WRONLY | O_APPEND) { file in
            var (written, error) = (0, CInt(0))
            while written < 16 << 20, error == 0 {
              let count = write(file, chunk, chunk.count)
              if count < 0 { error = errno } else { written += count }
            }
            #expect(error == ENOSPC && written > 1 << 20, "\(written)")
          }
        }
        #expect(try opened(mount) > 1)
        var status = statvfs()
        try fixture.substitution.call("statvfs") { statvfs($0, &status) }
        #expect(status.f_bfree * status.f_frsize > 2 << 20)
      }
    }

    @Test(
      "no writer changes what an append-only file has, whether it is read or not", .timeLimit(.minutes(1)))
    func appendOnly() throws {
      try withPassthrough { mount, fixture in
        let (path, below) = (mount.point / "log", fixture.substitution / "log")
        for isReadBefore in [false, true] {
          try path.write("first\n")
          #expect(try eventually(within: 10) { try mount.report().passthrough?.open == 0 })
          defer { _ = try? setFlag("-a", of: below) }
          if !isReadBefore { try setFlag("+a", of: below) }
          try path.withFile(O_RDONLY) { reader in
            if isReadBefore { try setFlag("+a", of: below) }
            try path.withFile(O_WRONLY | O_APPEND) { file in
              // The kernel does not know the flag and lets the program do so.
              #expect(fcntl(file, F_SETFL, 0) == 0)
              _ = pwrite(file, "LOST", 4, 0)
              #expect(fcntl(file, F_SETFL, O_APPEND) == 0)
              try ByteString.put("second\n", in: file)
            }
            try expectErrno(.notPermitted) { try path.withFile(O_WRONLY) { _ in } }
            if isReadBefore {
              try expectErrno(.resourceBusy) { try path.withFile(O_RDWR | O_APPEND) { _ in } }
            }
            #expect(try below.readText().hasPrefix("first\n") && below.readText().hasSuffix("second\n"))
            #expect(try ByteString.text(of: reader) == below.readText())
          }
          try setFlag("-a", of: below)
          try path.remove()
        }
      }
    }

    @Test("a program that runs in the layer is not opened for writing: ETXTBSY", .timeLimit(.minutes(1)))
    func running() throws {
      try withPassthrough { mount, fixture in
        let (path, below) = (mount.point / "sleep", fixture.substitution / "sleep")
        try Command("cp", "/bin/sleep", path.text).check()
        #expect(try eventually(within: 10) { try mount.report().passthrough?.open == 0 })
        for isRead in [false, true] {
          var started: Child?
          // Until the last descriptor is closed.
          let isStarted = eventually(within: 10) {
            started = try? Child(Command([below, "60"]))
            return started != nil
          }
          #expect(isStarted)
          let program = try #require(started)
          defer { kill(program.pid, SIGKILL) }
          let name = "/proc/\(program.pid)/exe"
          #expect(eventually(within: 10) { (try? ByteString(name).linkTarget()) == below })
          let reader = isRead ? try path.call("open") { open($0, O_RDONLY | O_CLOEXEC) } : -1
          defer { if isRead { close(reader) } }
          for flags in [O_WRONLY, O_RDWR] {
            let error = try errorNumber { try path.withFile(flags) { _ in } }
            #expect(error?.rawValue == ETXTBSY, "\(String(describing: error))")
          }
          kill(program.pid, SIGKILL)
          _ = try program.wait(timeout: 10)
          let isFree = eventually(within: 10) { (try? path.withFile(O_RDWR) { _ in true }) != nil }
          #expect(isFree)
        }
      }
    }

    @Test("a file system without O_DIRECT refuses it: EINVAL", .timeLimit(.minutes(1)))
    func refusals() throws {
      let fixture = try Fixture()
      try Command("mount", "-t", "ramfs", "ramfs", fixture.substitution.text).check()
      try withPassthrough(fixture: fixture) { mount, fixture in
        let path = mount.point / "new"
        try path.write("text")
        for flags in [O_RDONLY, O_RDWR] {
          // An opening that is not passed through is not refused.
          let isRefused = try eventually(within: 10) {
            try errorNumber { try path.withFile(flags | Self.direct) { _ in } } == .invalidArgument
          }
          #expect(isRefused)
        }
        #expect(try eventually(within: 10) { try mount.report().passthrough?.open == 0 })
        #expect(try path.readText() == "text")
      }
    }

    @Test(
      "a layer below is never written to, while files of the upper layer come and go", .timeLimit(.minutes(1))
    )
    func replaced() throws {
      try withPassthrough { mount, fixture in
        let (name, text) = ("plain.txt" as ByteString, "main's plain\n")
        let (path, below) = (mount.point / name, fixture.substitution / name)
        let script = #"while true; do echo upper >"$0.new"; mv "$0.new" "$0"; rm -f "$0"; done"#
        let changer = try Child(Command(["bash", "-c", ByteString(script), below]))
        defer { kill(changer.pid, SIGKILL) }
        let end = Clock.now + 8
        var (count, errors) = (0, [Errno: Int]())
        while Clock.now < end {
          let error = try errorNumber {
            try path.withFile(O_WRONLY) { file in
              usleep(100)
              try ByteString.put("LOST", in: file, at: 0)
            }
          }
          if let error { errors[error, default: 0] += 1 } else { count += 1 }
          guard try (fixture.main / name).readText() == text else { break }
        }
        #expect(try (fixture.main / name).readText() == text)
        #expect(count > 0 && errors[.ioError] == nil, "\(count), \(errors)")
      }
    }
  }
}
