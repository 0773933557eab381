import Glibc
import Posix
import TestSupport
import Testing

/// The file by which Wine recognizes a file system where case does not count.
extension MountTests {
  @Suite(.enabled(if: Mount.hasControl)) struct FoldingMarkerTests {
    private static let name: ByteString = ".ciopfs"

    private func withBundle(_ options: ByteString..., body: (Fixture, Mount) throws -> Void) throws {
      let fixture = try Fixture(isFilled: false)
      try (fixture.main / "Data/Inner").makeDirectories()
      try (fixture.main / "Data/Inner/file").write("main")
      try (fixture.main / "own").makeDirectories()
      try (fixture.main / "own" / Self.name).write("a layer's")
      var setup = fixture.setup()
      setup.options += options
      try withMount(setup) { try body(fixture, $0) }
    }

    /// The error with which an operation fails; nil if it does not.
    private func failure(_ body: () throws -> Void) -> Errno? {
      do { try body() } catch { return (error as? DiskError)?.errno }
      return nil
    }

    @Test("every directory has it, empty and unlisted", .timeLimit(.minutes(1)))
    func found() throws {
      try withBundle("case=insensitive") { fixture, mount in
        for folder: ByteString in ["", "Data", "DATA/inner"] {
          let path = mount.point / folder / Self.name
          let status = try path.status()
          #expect(status.kind == .regular && status.size == 0 && status.permissions == 0o444)
          #expect(try path.read().isEmpty)
          #expect(try !(mount.point / folder).names().contains(Self.name))
          #expect((mount.point / folder / ".CIOPFS").exists)
          #expect(failure { try path.write("changed") } == .readOnlyFileSystem)
        }
        try Command(["diff", "-r", fixture.main / "Data", mount.point / "data"]).check()
        #expect(try (mount.point / "own" / Self.name).readText() == "a layer's")
        #expect(try (mount.point / "own").names() == [Self.name])
      }
    }

    @Test("it gives way to an entry of a layer, and comes back", .timeLimit(.minutes(1)))
    func coherence() throws {
      try withBundle("case=insensitive") { fixture, mount in
        let path = mount.point / "Data" / Self.name
        for round in 0..<5 {
          #expect(try path.read().isEmpty)
          try (fixture.main / "Data/.CIOPFS").write("there \(round)")
          try mount.barrier()
          #expect(try path.readText() == "there \(round)")
          try (fixture.main / "Data/.CIOPFS").remove()
          try mount.barrier()
        }
      }
    }

    @Test("no directory has it where case counts", .timeLimit(.minutes(1)))
    func sensitive() throws {
      try withBundle { _, mount in
        #expect(!(mount.point / Self.name).exists && !(mount.point / "Data" / Self.name).exists)
      }
    }

    @Test(
      "in a writable mount it cannot be changed, nor keeps a directory from being removed",
      .timeLimit(.minutes(1)))
    func writable() throws {
      try withBundle("case=insensitive", "writable") { fixture, mount in
        let path = mount.point / "Data/Inner" / Self.name
        #expect(failure { try path.remove() } == .notPermitted)
        #expect(failure { try path.write("changed") } == .readOnlyFileSystem)
        try (mount.point / "Data/new").write("new")
        for arguments: [ByteString] in [
          ["mv", "-f", mount.point / "Data/new", path], ["mv", path, mount.point / "moved"],
          ["ln", mount.point / "Data/new", path], ["ln", path, mount.point / "linked"], ["mkdir", path],
        ] {
          #expect(try Command(arguments).run().status != 0, "\(arguments)")
        }
        #expect(try path.read().isEmpty && (mount.point / "Data/new").readText() == "new")
        for folder: ByteString in ["Data", "own"] {
          _ = try (mount.point / folder / Self.name).status()
          try Command(["rm", "-rf", mount.point / folder]).check()
          #expect(!(mount.point / folder).exists)
        }
        #expect(try mount.names() == [])
        #expect((fixture.main / "own" / Self.name).exists)
      }
    }
  }
}
