import Posix
import TestSupport
import Testing

/// With little memory and few descriptors the daemon is slower but correct.
extension MountTests {
  @Suite struct ResourceLimitTests {
    @Test("64 descriptors suffice for concurrent readers, listeners and changes", .timeLimit(.minutes(2)))
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
        try mount.writeControl("route A s:B\n")
        let deep = (fixture.main / "a/folder-3")
        for round in 0..<4 {
          #expect(try readAll(in: mount.point) == 30 * 40 + 200 + round)
          try (deep / ByteString("new-\(round)")).write("new\n")
          try mount.writeControl("x:round\n")
          try mount.barrier()
        }
        let isDelivered = eventually(within: 10) {
          listeners.allSatisfy { $0.outputText.split(separator: "\n").count { $0.contains("posted") } == 4 }
        }
        #expect(isDelivered, "\(listeners.map(\.outputText))")
        #expect(try ByteString("/proc/\(mount.worker)/fd").list().count <= 64)
        #expect(mount.process.errorText == "")
      }
    }

    @Test("64 descriptors suffice for writing to many files", .timeLimit(.minutes(1)))
    func writtenFiles() throws {
      let fixture = try Fixture(isFilled: false)
      try fixture.fill(folders: ["a"], files: 60)
      var setup = fixture.setup
      setup.options = ["writable"]
      setup.descriptorLimit = 64
      try withMount(setup) { mount in
        let folder = mount.point / "a"
        let below = try folder.names()
        let contents = below.map { folder / $0 } + (0..<200).map { folder / ByteString("new-\($0)") }
        for path in contents { try path.write("text of \(path)") }
        for path in contents { #expect(try path.readText() == "text of \(path)") }
        #expect(mount.process.errorText == "")
      }
    }

    @Test(
      "a mount that may open too few files is refused", .timeLimit(.minutes(1)), arguments: [12, 20, 40, 63])
    func tooFewDescriptors(limit: Int) throws {
      let fixture = try Fixture()
      let script = #"ulimit -n "$1" && exec "$2" "$3" "$4" -o writable="$5""#
      let outcome = try Command.shell(
        script, ByteString("\(limit)"), try Binary.underTest(), fixture.main, fixture.point,
        fixture.substitution
      ).run()
      #expect(outcome.status == 1)
      #expect(
        outcome.errorText
          == "bundlefs: a mount needs 64 open files, but RLIMIT_NOFILE allows \(limit); see 'ulimit -Hn'\n")
      let mounted = try MountTable.entry(at: fixture.point)
      #expect(mounted == nil)
    }

    @Test("24 MiB of memory suffice for 20,000 files and 90 MB from an archive", .timeLimit(.minutes(3)))
    func memory() throws {
      let fixture = try Fixture(isFilled: false)
      try fixture.fill(folders: (0..<50).map { ByteString("folder-\($0)") }, files: 200)
      let archive = fixture.folder / "archive.zip"
      try makeArchive(archive, files: 1500, size: 60_000)
      let group = try MemoryCgroup(limit: 24 << 20)
      var setup = fixture.setup
      setup.substitutions.append(archive)
      setup.controlGroup = group.path
      setup.lifetime = 170
      try withMount(setup) { mount in
        for _ in 0..<2 {
          #expect(try readAll(in: mount.point) == 50 * 400 + 1500)
          try mount.barrier()
        }
        let size = try Command.shell(#"cat "$1"/zip/* | wc -c"#, mount.point).check(timeout: 60)
        #expect(size.outputText == "\(1500 * 60_000)\n")
        #expect(try group.timesReached() > 0, "the limit was never reached")
        // libfuse prints this for a large reply whose request was interrupted.
        let interruptedReply = "fuse: splice from pipe: No such file or directory"
        #expect(mount.process.errorText.split(separator: "\n").filter { $0 != interruptedReply } == [])
      }
    }

    /// Reads every file, with eight processes.
    /// - Returns: the number of readable files.
    private func readAll(in point: ByteString) throws -> Int {
      let read = try Command.shell(
        #"set -o pipefail; cd "$1" && find . -type f -print0 | xargs -0 -n 40 -P 8 md5sum | wc -l"#,
        point
      ).check(timeout: 100)
      return Int(read.outputText.filter(\.isNumber)) ?? -1
    }

    /// Makes an archive of deflated entries that are too small to be unpacked to files.
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
