import Glibc
import Posix
import TestSupport
import Testing

/// The space of deleted files that were read through the mount.
extension MountTests {
  @Suite struct DeletedFileTests {
    @Test(
      "a deleted or replaced file that no program has open is closed", .timeLimit(.minutes(2)),
      arguments: ["on", "off"])
    func closed(announce: String) throws {
      let fixture = try Fixture()
      // More than the announcer reports by name.
      let count = announce == "on" ? 3000 : 60
      let names = (0..<count).map { ByteString("file\($0)") }
      for name in names { try (fixture.main / "folder" / name).write("content\n") }
      try withMount(fixture.setup(ByteString("announce=\(announce)"))) { mount in
        let folder = mount.point / "folder"
        for name in names { _ = try (folder / name).read() }
        try (folder / names[0]).withOpen(O_RDONLY) { open in
          var byte: UInt8 = 0
          #expect(read(open, &byte, 1) == 1)
          for (number, name) in names.enumerated() {
            let file = fixture.main / "folder" / name
            if number % 2 == 0 { try file.remove() } else { try file.replace("new\n") }
          }
          try mount.barrier()
          let isReleased = try eventually(within: 30) { try Self.deleted(of: mount) <= 1 }
          let left = try Self.deleted(of: mount)
          #expect(isReleased, "\(left) are open")
          #expect(try ByteString.readAll(open) == Array("ontent\n".utf8), "a reader keeps the content")
        }
        let isReleased = try eventually(within: 30) { try Self.deleted(of: mount) == 0 }
        #expect(isReleased)
      }
    }

    /// How many deleted files the daemon has open.
    private static func deleted(of mount: Mount) throws -> Int {
      try Command.shell(
        #"ls -l "/proc/$1/fd" | grep -c -e "/file.*(deleted)" || true"#, ByteString("\(mount.worker)")
      )
      .check().outputText.split(separator: "\n").compactMap { Int($0) }.first ?? 0
    }
  }
}
