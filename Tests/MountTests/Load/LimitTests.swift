import Posix
import TestSupport
import Testing

/// With little memory, and with few descriptors, the daemon is slower and nothing else.
extension MountTests {
  @Suite struct LimitTests {
    @Test("64 descriptors: many readers, listeners and changes at once", .timeLimit(.minutes(2)))
    func descriptors() throws {
      let fixture = try Fixture(isFilled: false)
      try fixture.fill(folders: (0..<30).map { ByteString("a/folder-\($0)") }, files: 20)
      try makeArchive(fixture.folder / "archive.zip", files: 200, size: 800)
      var setup = fixture.setup
      setup.substitutions.append(fixture.folder / "archive.zip")
      setup.descriptorLimit = 64
      try withMount(setup) { mount in
        let listeners = try (0..<8).map { _ in
          try Child(Command([try Binary.underTest(), "listen", mount.point]))
        }
        defer { listeners.forEach { try? $0.kill() } }
        try mount.say("route A s:B\n")
        let deep = (fixture.main / "a/folder-3")
        for round in 0..<4 {
          #expect(try digest(of: mount.point) == 30 * 40 + 200 + round)
          try (deep / ByteString("new-\(round)")).write("new\n")
          try mount.say("x:round\n")
          try mount.barrier()
        }
        let isTold = eventually(within: 10) {
          listeners.allSatisfy { $0.outputText.split(separator: "\n").count { $0.contains("posted") } == 4 }
        }
        #expect(isTold, "\(listeners.map(\.outputText))")
        #expect(try ByteString("/proc/\(mount.process.pid)/fd").list().count <= 64)
        #expect(mount.process.errorText == "")
      }
    }

    @Test("24 MiB of memory: 20,000 files, and 90 MB from an archive", .timeLimit(.minutes(3)))
    func memory() throws {
      let fixture = try Fixture(isFilled: false)
      try fixture.fill(folders: (0..<50).map { ByteString("folder-\($0)") }, files: 200)
      let archive = fixture.folder / "archive.zip"
      try makeArchive(archive, files: 1500, size: 60_000)
      let group = try MemoryGroup(limit: 24 << 20)
      var setup = fixture.setup
      setup.substitutions.append(archive)
      setup.controlGroup = group.path
      setup.lifetime = 170
      try withMount(setup) { mount in
        for _ in 0..<2 {
          #expect(try digest(of: mount.point) == 50 * 400 + 1500)
          try mount.barrier()
        }
        let size = try Command.shell(#"cat "$1"/zip/* | wc -c"#, mount.point).check(timeout: 60)
        #expect(size.outputText == "\(1500 * 60_000)\n")
        #expect(try group.timesReached() > 0, "the limit was never met")
        // libfuse says so of a large reply for which nobody waits any more.
        let unheard = "fuse: splice from pipe: No such file or directory"
        #expect(mount.process.errorText.split(separator: "\n").filter { $0 != unheard } == [])
      }
    }

    /// Reads every file, eight at a time.
    /// - Returns: how many could be read.
    private func digest(of point: ByteString) throws -> Int {
      let read = try Command.shell(
        #"set -o pipefail; cd "$1" && find . -type f ! -name .routes -print0 | xargs -0 -n 40 -P 8 md5sum | wc -l"#,
        point
      ).check(timeout: 100)
      return Int(read.outputText.filter(\.isNumber)) ?? -1
    }

    /// Deflated entries that are too small for files of their own.
    private func makeArchive(_ path: ByteString, files: Int, size: Int) throws {
      try Command(
        [
          "python3", "-c",
          """
          import sys, zipfile
          with zipfile.ZipFile(sys.argv[1], "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            for number in range(int(sys.argv[2])):
              archive.writestr("zip/%d" % number, (b"%08d" % number) * (int(sys.argv[3]) // 8))
          """, path, ByteString("\(files)"), ByteString("\(size)"),
        ]
      ).check()
    }
  }
}
