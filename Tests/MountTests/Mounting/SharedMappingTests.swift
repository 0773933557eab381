import Glibc
import Posix
import TestSupport
import Testing

/// Shared writable mappings, which the kernel allows since it does not ask at open(2).
extension MountTests {
  @Suite struct SharedMappingTests {
    @Test("what a shared mapping changes is gone once it is written back", .timeLimit(.minutes(1)))
    func takenBack() throws {
      let fixture = try Fixture()
      try withMount(fixture.setup) { mount in
        try mount.writeControl("route Any s:Text\n")
        for file in [mount.point / "plain.txt", mount.controlFile] {
          let original = try file.read()
          for endsBySync in [true, false] {
            try Self.withMapping(of: file) { bytes in
              bytes.storeBytes(of: UInt8(ascii: "#"), as: UInt8.self)
              if endsBySync {
                #expect(msync(bytes.baseAddress, bytes.count, MS_SYNC) == -1 && errno == EROFS)
              }
            }
            let isBack = try eventually(within: 10) { try file.read() == original }
            #expect(isBack, "\(file) \(endsBySync)")
          }
        }
      }
    }

    private static func withMapping(
      of file: ByteString, _ body: (UnsafeMutableRawBufferPointer) throws -> Void
    ) throws {
      try file.withOpen(O_RDWR) { open in
        guard let map = mmap(nil, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, open, 0), map != MAP_FAILED
        else { throw DiskError("mmap", file, .current) }
        defer { munmap(map, 4096) }
        try body(UnsafeMutableRawBufferPointer(start: map, count: 4096))
      }
    }

    @Test("who else may write to the control file cannot read and thus not map it", .timeLimit(.minutes(1)))
    func controlFile() throws {
      let fixture = try Fixture()
      for (option, mode) in [("666", 0o622), ("660", 0o620), ("644", 0o644), ("622", 0o622), ("777", 0o733)]
        as [(String, UInt32)]
      {
        try withMount(fixture.setup("allow_other", ByteString("routes_mode=\(option)"))) { mount in
          #expect(try mount.controlFile.status().permissions == mode)
          guard option == "666" else { return }
          try mount.writeControl("route Any s:Text\n")
          let nobody = UnprivilegedTests.nobody
          #expect(try mount.bash("exec 3<>\"$R\"", user: nobody).errorText.contains("Permission denied"))
          #expect(try mount.bash("echo x:1 > \"$R\"", user: nobody).status == 0)
          let posted = try Command([try Binary.underTest(), "route", mount.point, "x:2"]).asUser(nobody).run()
          #expect(posted.status == 0 && posted.outputText.isEmpty, "\(posted.errorText)")
          let unknown = try Command([try Binary.underTest(), "route", mount.point, "x:2/3"]).asUser(nobody)
            .run()
          #expect(unknown.status == 1, "the error shows all the same")
          #expect(try mount.routesText().summaries.prefix(3) == ["applied", "posted Any", "posted Any"])
        }
      }
    }
  }
}
