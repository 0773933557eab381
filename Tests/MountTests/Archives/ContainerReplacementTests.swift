import Glibc
import Posix
import TestSupport
import Testing

/// A tar archive is replaced in every way while others read it. Its states differ in nothing but content.
extension MountTests {
  @Suite struct ContainerReplacementTests {
    static let replacements = TestLength.steps(full: 20, brief: 5)

    @Test(
      "concurrent readers never see a mixture of a tar archive's states", .timeLimit(.minutes(5)),
      arguments: ["tar", "tar.gz", "tar.xz"])
    func replaced(format: String) throws {
      let fixture = try Fixture(format)
      try withMount(MountSetup(main: fixture.live, point: fixture.point)) { mount in
        let isStopping = Locked(false)
        let readers = try (0..<4).map { number in
          try LoopThread("tar reader \(number)", until: isStopping) { _ in try fixture.readAll() }
        }
        defer {
          isStopping.withLock { $0 = true }
          _ = eventually(within: 60) { readers.allSatisfy(\.isFinished) }
        }
        var random = SplitMix64(seed: 1)
        for step in 0..<Self.replacements {
          let state = step % 2
          let method = try fixture.replace(by: fixture.states[state], using: &random)
          try mount.barrier()
          for name in fixture.names {
            let content = try (mount.point / name).read()
            #expect(
              content.first == UInt8(state) && Set(content).count == 1, "step \(step), \(method): \(name)")
          }
          for reader in readers {
            if let failure = reader.failure { Issue.record("step \(step): \(failure)") }
          }
          if readers.contains(where: { $0.failure != nil }) { return }
        }
        #expect(readers.allSatisfy { $0.iterations > 0 }, "a reader made no progress")
      }
    }
  }

  private struct Fixture: Sendable {
    let folder: TemporaryFolder
    let live: ByteString
    let point: ByteString
    let names: [ByteString] = ["small", "d/medium", "large"]
    let states: [[UInt8]]

    /// Two archives of equal names, sizes and times, of which the first has only zeros, the second only ones.
    init(_ format: String) throws {
      folder = try TemporaryFolder()
      (live, point) = (folder / "live", try folder.folder("mount"))
      let script = """
        import io, os, sys, tarfile
        os.chdir(sys.argv[1])
        for state in (0, 1):
            with tarfile.open(str(state), "w:" + "\(format)"[4:]) as archive:
                for name, size in [("small", 100), ("d/medium", 200_000), ("large", 6_000_000)]:
                    info = tarfile.TarInfo(name)
                    info.size = size
                    archive.addfile(info, io.BytesIO(bytes([state]) * size))
        """
      try Command(["python3", "-c", ByteString(script), folder.path]).check()
      states = [try (folder / "0").read(), try (folder / "1").read()]
      try live.write(states[1])
    }

    /// Replaces the archive: by a rename, in place, or in place with a pause.
    /// - Returns: the method, for messages.
    func replace(by state: [UInt8], using random: inout SplitMix64) throws -> String {
      switch Int.random(in: 0..<4, using: &random) {
      case 0, 1:
        try live.replace(state)
        return "renamed"
      case 2:
        try live.write(state)
        return "written in place"
      default:
        let part = Int.random(in: 0..<state.count, using: &random)
        try live.write(Array(state[..<part]))
        Clock.sleep(Double.random(in: 0..<0.1, using: &random))
        try live.withOpen(O_WRONLY | O_APPEND) { file in
          _ = state[part...].withUnsafeBytes { write(file, $0.baseAddress, $0.count) }
        }
        return "written in place with a pause"
      }
    }

    func readAll() throws {
      for name in names {
        do {
          let content = try (point / name).withOpen(O_RDONLY) { try Self.content($0) }
          if Set(content).count != 1 { throw TestFailure("\(name): \(content.count) bytes of two states") }
        } catch let error as DiskError {
          // What was read so far was lost because the archive was overwritten.
          if error.errno != .staleFileHandle { throw error }
        }
      }
    }

    private static func content(_ file: CInt) throws -> [UInt8] {
      var (content, buffer) = ([UInt8](), [UInt8](repeating: 0, count: 100_000))
      while true {
        let count = try ByteString.readPart(&buffer, of: file, at: Int64(content.count))
        if count == 0 { return content }
        content += buffer[..<count]
      }
    }
  }
}
