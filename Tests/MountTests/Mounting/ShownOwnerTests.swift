import Glibc
import Posix
import TestSupport
import Testing

/// `uid=`, `uidmapping=`, `squash_to_root`, `umask=` and so on in mounts.
extension MountTests {
  @Suite struct ShownOwnerTests {
    private static let nobody = UnprivilegedTests.nobody

    /// Owner, group and permissions of what is at a path, or the error.
    private func shown(_ path: ByteString) throws -> String {
      let outcome = try Command.shell("stat -c '%u:%g %a' \"$1\"", path).check()
      return String(outcome.outputText.dropLast())
    }

    private func make(
      _ path: ByteString, _ owner: UInt32, _ group: UInt32, _ mode: UInt32, isFolder: Bool = false
    ) throws {
      if isFolder { try path.makeDirectory() } else { try path.write("text") }
      try Command(["chown", ByteString("\(owner):\(group)"), path]).check()
      try path.setMode(mode)
    }

    @Test(
      "each option shows its owner and permissions of files, folders, and entries of archives",
      .timeLimit(.minutes(2)),
      arguments: [
        ("uid=7,gid=8", "7:8 750", "7:8 1755"), ("uid=7", "7:200 750", "7:400 1755"),
        ("squash_to_root", "0:0 750", "0:0 1755"), ("squash_to_uid=7,squash_to_gid=8", "7:8 750", "7:8 1755"),
        ("umask=027", "100:200 4750", "300:400 3750"),
        ("uidmapping=100:0:1:200:1:200", "0:200 750", "101:400 1755"),
        ("uidmapping=100:100:1,gidmapping=200:200:1", "100:200 4750", "65534:65534 1555"),
        ("gid=9,umask=7", "100:9 750", "300:9 1750"),
      ])
    func options(options: String, file: String, folder: String) throws {
      let fixture = try Fixture()
      try make(fixture.main / "file", 100, 200, 0o4750)
      try make(fixture.main / "down", 300, 400, 0o3755, isFolder: true)
      try withMount(fixture.setup(ByteString(options))) { mount in
        #expect(try shown(mount.point / "file") == file)
        #expect(try shown(mount.point / "down") == folder)
        // By READDIRPLUS, and when the kernel has nothing of it.
        let listed = try Command.shell("find \"$1/\" -name file -printf '%U:%G %m'", mount.point).check()
        #expect(listed.outputText == file)
        try mount.killWorker()
        try Command([try Binary.underTest(), "invalidate", mount.point]).check()
        #expect(try shown(mount.point / "file") == file)
      }
    }

    @Test("random maps show what a simple reference has", .timeLimit(.minutes(2)), arguments: 0..<4)
    func model(seed: UInt64) throws {
      var random = SplitMix64(seed: seed)
      let fixture = try Fixture()
      var owners: [(UInt32, UInt32)] = []
      for number in 0..<40 {
        owners.append((UInt32(random.next() % 60), 100_000 + UInt32(random.next() % 60)))
        try make(fixture.main / ByteString("f\(number)"), owners[number].0, owners[number].1, 0o644)
      }
      func ranges(_ base: UInt64) -> [[UInt64]] {
        (0..<3).map { _ in [base + random.next() % 60, random.next() % 4_000_000_000, 1 + random.next() % 30]
        }
      }
      let (users, groups) = (ranges(0), ranges(100_000))
      func text(_ ranges: [[UInt64]]) -> String {
        ranges.flatMap { $0 }.map(String.init).joined(separator: ":")
      }
      func reference(_ id: UInt32, _ ranges: [[UInt64]]) -> UInt64 {
        for range in ranges {
          for step in 0..<range[2] where range[0] + step == UInt64(id) { return range[1] + step }
        }
        return 65534
      }
      let options = "uidmapping=\(text(users)),gidmapping=\(text(groups))"
      try withMount(fixture.setup(ByteString(options))) { mount in
        for (number, owner) in owners.enumerated() {
          let status = try shown(mount.point / ByteString("f\(number)"))
          let expected = "\(reference(owner.0, users)):\(reference(owner.1, groups)) "
          #expect(status.hasPrefix(expected), "\(owner) by \(options): \(status)")
        }
      }
    }

    @Test("the kernel decides by what is shown", .timeLimit(.minutes(1)))
    func rights() throws {
      let fixture = try Fixture()
      try make(fixture.main / "private", 100, 200, 0o600)
      try make(fixture.main / "open", 100, 200, 0o644)
      try make(fixture.main / "closed", 100, 200, 0o755, isFolder: true)
      try make(fixture.main / "closed/inner", 100, 200, 0o644)
      func expect(_ isReadable: Bool, _ path: ByteString, _ user: UInt32) throws {
        let outcome = try Command(["cat", path]).asUser(user).run()
        #expect((outcome.status == 0) == isReadable, "\(path) by \(user): \(outcome.errorText)")
      }
      try withMount(fixture.setup("allow_other", "uid=1234")) { mount in
        try expect(true, mount.point / "private", 1234)
        for user: UInt32 in [100, 200, Self.nobody] { try expect(false, mount.point / "private", user) }
        try expect(true, mount.point / "open", 100)
      }
      try withMount(fixture.setup("allow_other", "umask=077")) { mount in
        for path: ByteString in ["open", "closed/inner"] {
          try expect(true, mount.point / path, 0)
          try expect(false, mount.point / path, Self.nobody)
        }
        try expect(false, mount.point / ".routes", Self.nobody)
        let resource = try Command(["ls", mount.point / "rsrc:"]).asUser(Self.nobody).run()
        #expect(resource.status != 0)
      }
      // The user 65534 owns none of what has no owner here.
      try withMount(fixture.setup("allow_other", "uidmapping=5:5:1,gidmapping=5:5:1")) { mount in
        let hidden = try shown(mount.point / "private")
        #expect(hidden == "65534:65534 0")
        try expect(false, mount.point / "private", Self.nobody)
        try expect(true, mount.point / "open", Self.nobody)
      }
    }

    @Test("an ACL lets users in as the map shows them", .timeLimit(.minutes(1)))
    func accessList() throws {
      let fixture = try Fixture()
      try make(fixture.main / "file", 100, 200, 0o600)
      let list = ACLValue.list(
        (.owner, 6, nil), (.user, 4, 300), (.user, 4, 301), (.owningGroup, 0, nil), (.mask, 4, nil),
        (.other, 0, nil))
      try (fixture.main / "file").setAttribute("system.posix_acl_access", list)
      func expect(_ isReadable: Bool, _ mount: Mount, _ user: UInt32) throws {
        let outcome = try Command(["cat", mount.point / "file"]).asUser(user).run()
        #expect((outcome.status == 0) == isReadable, "\(user): \(outcome.errorText)")
      }
      try withMount(fixture.setup("allow_other", "uidmapping=300:400:1")) { mount in
        try expect(true, mount, 400)
        for user: UInt32 in [100, 300, 301, Self.nobody] { try expect(false, mount, user) }
      }
      try withMount(fixture.setup("allow_other", "umask=026")) { try expect(true, $0, 300) }
      try withMount(fixture.setup("allow_other", "umask=046")) { try expect(false, $0, 300) }
    }

    @Test("a set-user-ID program that is shown as root's does not run as root", .timeLimit(.minutes(1)))
    func setUserID() throws {
      let fixture = try Fixture()
      let program = fixture.main / "id"
      try Command(["cp", "/usr/bin/id", program]).check()
      try Command(["chown", "100:200", program]).check()
      try program.setMode(0o6755)
      func user(_ options: ByteString) throws -> String {
        try withMount(fixture.setup("allow_other", "suid", options)) { mount in
          try Command([mount.point / "id", "-u"]).asUser(Self.nobody).check().outputText
        }
      }
      // So the mount honours the bit.
      #expect(try user("umask=0") == "100\n")
      for option: ByteString in ["squash_to_root", "uid=0", "uidmapping=100:0:1"] {
        #expect(try user(option) == "65534\n", "\(option)")
      }
    }

    @Test("without allow_other, a user's mount may show any owner", .timeLimit(.minutes(1)))
    func ordinaryUser() throws {
      let fixture = try Fixture()
      var setup = try UnprivilegedTests().userSetup(fixture)
      setup.options = ["uid=0", "umask=077"]
      try withOpenDevice {
        try withMount(setup) { mount in
          let outcome = try Command.shell(
            "stat -c '%u %a' \"$1/plain.txt\"; cat \"$1/plain.txt\"", mount.point
          ).asUser(Self.nobody).run()
          #expect(outcome.status != 0 && !outcome.outputText.contains("main"), "\(outcome.outputText)")
        }
      }
    }
  }
}
