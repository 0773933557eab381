import Posix
import TestSupport
import Testing

/// When the set-user-ID and set-group-ID bits go, beside the file system of the layers.
extension MountTests {
  @Suite struct SetIDBitTests {
    private static let user: UInt32 = 1000

    /// Lets a named user read the file.
    private static let setACL = """
      /usr/bin/python3 -c '
      import os, struct, sys
      entries = [(1, 7, -1), (2, 4, 1234), (4, 5, -1), (16, 5, -1), (32, 5, -1)]
      value = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in entries)
      os.setxattr(sys.argv[1], "system.posix_acl_access", value)
      ' "$1"
      """

    /// Each with the mode that the file has before.
    private static let changes: [(mode: UInt32, script: String)] = [
      // CVE-2016-7097: the caller is not in the file's group.
      (0o2755, setACL),
      (0o4755, "/usr/bin/python3 -c 'import os, sys; os.chown(sys.argv[1], -1, -1)' \"$1\""),
      (0o2755, "/usr/bin/python3 -c 'import os, sys; os.chown(sys.argv[1], -1, -1)' \"$1\""),
      (0o2745, "/usr/bin/python3 -c 'import os, sys; os.chown(sys.argv[1], -1, -1)' \"$1\""),
      (0o6777, "echo more >> \"$1\""),
      (0o6777, "truncate -s 1 \"$1\""),
      (0o4755, "chmod u+w \"$1\""),
    ]

    @Test("an owner's changes", .timeLimit(.minutes(1)))
    func owner() throws {
      try expectSameModes { Command.shell($0, $1).asUser(Self.user) }
    }

    @Test("changes by root", .timeLimit(.minutes(1)))
    func root() throws {
      try expectSameModes { Command.shell($0, $1) }
    }

    @Test("changes by root without CAP_FSETID", .timeLimit(.minutes(1)))
    func rootWithoutCapability() throws {
      try expectSameModes {
        Command([
          "setpriv", "--bounding-set=-fsetid", "--inh-caps=-fsetid", "bash", "-c", ByteString($0), "bash", $1,
        ])
      }
    }

    private func expectSameModes(_ command: (String, ByteString) -> Command) throws {
      let fixture = try Fixture()
      try fixture.folder.path.setMode(0o755)
      let plain = try fixture.folder.folder("plain")
      for (number, change) in Self.changes.enumerated() {
        for folder in [plain, fixture.main] {
          let file = folder / ByteString("\(number)")
          try file.write("text")
          try file.setOwner(Self.user, group: 500)
          try file.setMode(change.mode)
        }
      }
      try withWritable("allow_other", fixture: fixture) { mount, _ in
        for (number, change) in Self.changes.enumerated() {
          let name = ByteString("\(number)")
          let expected = try command(change.script, plain / name).run(timeout: 20)
          let outcome = try command(change.script, mount.point / name).run(timeout: 20)
          #expect(outcome.status == expected.status, "\(change): \(outcome.outputText)")
          let modes = try [plain, mount.point].map { try ($0 / name).status().permissions }
          #expect(modes[0] == modes[1], "\(change)")
        }
      }
    }
  }
}
