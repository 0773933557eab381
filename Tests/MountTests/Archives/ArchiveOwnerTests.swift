import Glibc
import Posix
import TestSupport
import Testing

/// `owners=`: what a mount shows of the owners and rights in archives.
extension MountTests {
  @Suite struct ArchiveOwnerTests {
    /// Writes the archive `sys.argv[1]` of entries with all that concerns rights.
    private static let script = """
      import io, struct, sys, tarfile, zipfile
      CAPABILITY = b"\\x01\\x00\\x00\\x02" + struct.pack("<IIII", 1 << 13, 0, 0, 0)
      def add(archive, name, uid, gid, mode, data=b"text", **fields):
          info = tarfile.TarInfo(name)
          info.uid, info.gid, info.mode, info.size = uid, gid, mode, len(data)
          info.uname = info.gname = "root"
          for key, value in fields.items(): setattr(info, key, value)
          archive.addfile(info, io.BytesIO(data))
      def xattrs(**values):
          return {"SCHILY.xattr." + key.replace("__", "."): value.decode("utf-8", "surrogateescape") for key, value in values.items()}
      def tar(path, mode, first=1000):
          with tarfile.open(path, mode, format=tarfile.PAX_FORMAT, errors="surrogateescape", encoding="utf-8") as archive:
              add(archive, "folder", 1001, 1002, 0o3755, b"", type=tarfile.DIRTYPE, pax_headers=xattrs(user__of="folder".encode()))
              add(archive, "folder/own", first, 2000, 0o640)
              add(archive, "setuid", 0, 0, 0o4755)
              add(archive, "setgid", 5, 6, 0o2755)
              add(archive, "hard", 0, 0, 0o777, b"", type=tarfile.LNKTYPE, linkname="folder/own")
              add(archive, "link", 7, 8, 0o777, b"", type=tarfile.SYMTYPE, linkname="setuid")
              add(archive, "attributes", 9, 9, 0o644, pax_headers=xattrs(user__one=b"1", user__empty=b"", trusted__two=b"2", security__capability=CAPABILITY, user__overlay__opaque=b"y"))
              add(archive, "char", 10, 11, 0o666, b"", type=tarfile.CHRTYPE, devmajor=1, devminor=3)
              add(archive, "block", 10, 11, 0o660, b"", type=tarfile.BLKTYPE, devmajor=7, devminor=300)
              for name, uid in [("all", 2**32 - 1), ("more", 2**32), ("much", 2**62), ("less", -1), ("last", 2**32 - 2)]:
                  add(archive, name, uid, 0, 0o4755)
                  add(archive, "g" + name, 0, uid, 0o2755)
      def extra(uid, gid, size=4):
          return struct.pack("<HHBB", 0x7875, 3 + 2 * size, 1, size) + uid.to_bytes(size, "little") + bytes([size]) + gid.to_bytes(size, "little")
      def zip(path):
          with zipfile.ZipFile(path, "w") as archive:
              def add(name, mode, field):
                  info = zipfile.ZipInfo(name)
                  info.create_system, info.external_attr, info.extra = 3, mode << 16, field
                  archive.writestr(info, "text")
              add("own", 0o100640, extra(1000, 2000))
              add("long", 0o104755, extra(3000, 0, 8))
              add("all", 0o104755, extra(2**32 - 1, 0))
              add("more", 0o104755, extra(2**32, 0, 8))
              add("cut", 0o104755, extra(5, 5)[:-3])
              add("none", 0o105755, b"")

      """

    private func write(_ call: String, _ archive: ByteString) throws {
      try Command(["python3", "-c", ByteString(Self.script + call), archive]).check()
    }

    /// A tar archive that only root can write.
    private func tar(in folder: TemporaryFolder, _ mode: String = "w") throws -> ByteString {
      let archive = folder / "archive"
      try write("tar(sys.argv[1], '\(mode)')", archive)
      try archive.setMode(0o644)
      return archive
    }

    private func setup(_ archive: ByteString, in folder: TemporaryFolder, _ options: ByteString...) throws
      -> MountSetup
    {
      var setup = MountSetup(main: archive, point: try folder.folder("mount"))
      setup.options = options
      return setup
    }

    /// Owner, group and mode of each entry, as `stat -c` prints them.
    private func shown(_ mount: Mount) throws -> [String: String] {
      let outcome = try Command.shell(
        "cd \"$1\" && find . ! -name . -printf '%P %U:%G %m %y\\n'", mount.point
      )
      .check()
      return Dictionary(
        uniqueKeysWithValues: outcome.outputText.split(separator: "\n").map {
          let words = $0.split(separator: " ", maxSplits: 1)
          return (String(words[0]), String(words[1]))
        })
    }

    private func expect(_ mount: Mount, _ expected: [String: String]) throws {
      let shown = try shown(mount)
      for (name, text) in expected { #expect(shown[name] == text, "\(name)") }
      #expect(Set(shown.keys) == Set(expected.keys))
    }

    private static let odd = ["all", "more", "much", "less"]

    /// What is shown without set-user-ID bits and devices.
    private static let plain: [String: String] = [
      "folder": "1001:1002 1755 d", "folder/own": "1000:2000 640 f", "setuid": "0:0 755 f",
      "setgid": "5:6 755 f",
      "hard": "1000:2000 640 f", "link": "7:8 777 l", "attributes": "9:9 644 f", "last": "4294967294:0 755 f",
      "glast": "0:4294967294 755 f",
    ].merging(odd.flatMap { [($0, "0:0 755 f"), ("g" + $0, "0:0 755 f")] }) { $1 }

    private static let all = plain.merging([
      "folder": "1001:1002 3755 d", "setuid": "0:0 4755 f", "setgid": "5:6 2755 f", "char": "10:11 666 c",
      "block": "10:11 660 b", "last": "4294967294:0 4755 f", "glast": "0:4294967294 2755 f",
    ]) { $1 }

    @Test("by default all belongs to the mounting user", .timeLimit(.minutes(1)))
    func mounter() throws {
      let folder = try TemporaryFolder()
      try withMount(try setup(try tar(in: folder), in: folder, "suid", "dev")) { mount in
        let shown = try shown(mount)
        #expect(shown.values.allSatisfy { $0.hasPrefix("0:0 ") })
        #expect(shown["setuid"] == "0:0 755 f" && shown["folder"] == "0:0 755 d" && shown["char"] == nil)
        #expect(try (mount.point / "attributes").attributeNames().isEmpty)
      }
    }

    @Test("owners=archive serves owners and attributes", .timeLimit(.minutes(1)), arguments: ["w", "w:gz"])
    func owners(mode: String) throws {
      let folder = try TemporaryFolder()
      try withMount(try setup(try tar(in: folder, mode), in: folder, "owners=archive")) { mount in
        try expect(mount, Self.plain)
        let attributes = mount.point / "attributes"
        #expect(try Set(attributes.attributeNames()) == ["user.one", "user.empty"])
        #expect(try attributes.attribute("user.one") == Array("1".utf8))
        #expect(try (mount.point / "folder").attributeNames() == ["user.of"])
        #expect(try (mount.point / "folder").attribute("user.of") == Array("folder".utf8))
        #expect((try? attributes.attribute("security.capability")) == nil)
        // A successor shows the same.
        try mount.killWorker()
        try expect(mount, Self.plain)
        #expect(try Set(attributes.attributeNames()) == ["user.one", "user.empty"])
      }
    }

    @Test("root's mount with suid and dev serves set-user-ID bits and devices", .timeLimit(.minutes(1)))
    func privileges() throws {
      let folder = try TemporaryFolder()
      let archive = try tar(in: folder, "w:gz")
      try withMount(try setup(archive, in: folder, "owners=archive", "suid", "dev", "allow_other")) { mount in
        try expect(mount, Self.all)
        let numbers = try Command.shell("stat -c %t:%T \"$1/char\" \"$1/block\"", mount.point).check()
        #expect(numbers.outputText == "1:3\n7:12c\n")
        let capability = try (mount.point / "attributes").attribute("security.capability")
        #expect(capability == [1, 0, 0, 2, 0, 32, 0, 0] + [UInt8](repeating: 0, count: 12))
      }
      try withMount(try setup(archive, in: folder, "owners=archive", "suid", "dev", "nosuid", "nodev")) {
        try expect($0, Self.plain)
      }
    }

    @Test("an archive that others can write has no rights to give", .timeLimit(.minutes(1)))
    func writers() throws {
      let folder = try TemporaryFolder()
      let archive = try tar(in: folder)
      let setup = try setup(archive, in: folder, "owners=archive", "suid", "dev")
      for change: (ByteString) throws -> Void in [
        { try $0.setMode(0o664) }, { try $0.setMode(0o646) },
        {
          try $0.setMode(0o644)
          try $0.setOwner(1000, group: 0)
        },
      ] {
        try change(archive)
        try withMount(setup) { try expect($0, Self.plain) }
      }
    }

    @Test("another owner in the archive is shown, in the same file", .timeLimit(.minutes(1)))
    func change() throws {
      let folder = try TemporaryFolder()
      let archive = try tar(in: folder, "w:gz")
      try withMount(try setup(archive, in: folder, "owners=archive")) { mount in
        try expect(mount, Self.plain)
        let before = try (mount.point / "folder/own").status().inode
        try write("tar(sys.argv[1], 'w:gz', 1234)", folder / "next")
        try (folder / "next").rename(to: archive)
        let isShown = eventually(within: 20) {
          (try? shown(mount)["folder/own"]) == "1234:2000 640 f"
        }
        #expect(isShown)
        #expect(try (mount.point / "folder/own").status().inode == before)
      }
    }

    @Test("zip archives have the owners of Info-ZIP's field", .timeLimit(.minutes(1)))
    func zip() throws {
      let folder = try TemporaryFolder()
      let archive = folder / "archive.zip"
      try write("zip(sys.argv[1])", archive)
      try archive.setMode(0o644)
      let setup = try setup(archive, in: folder, "owners=archive", "suid")
      try withMount(setup) { mount in
        let whole = ["all", "more", "cut"].map { ($0, "0:0 755 f") }
        try expect(
          mount,
          ["own": "1000:2000 640 f", "long": "3000:0 4755 f", "none": "0:0 1755 f"].merging(whole) { $1 })
      }
    }

    @Test("cpio and bsdtar's archives have owners, too", .timeLimit(.minutes(1)))
    func others() throws {
      let folder = try TemporaryFolder()
      let files = try folder.folder("files")
      try (files / "own").write("text")
      try (files / "own").setMode(0o4750)
      try Command(["chown", "1000:2000", files / "own"]).check()
      try (files / "own").setMode(0o4750)
      try (files / "own").setAttribute("user.one", Array("1".utf8))
      let cpio = folder / "files.cpio"
      try Command.shell("cd \"$1\" && echo own | cpio -o -H newc --quiet > \"$2\"", files, cpio).check()
      let tar = folder / "files.tar"
      try Command(["bsdtar", "-c", "--xattrs", "-f", tar, "-C", files, "own"]).check()
      for archive in [cpio, tar] {
        try archive.setMode(0o600)
        try withMount(try setup(archive, in: folder, "owners=archive", "suid")) { mount in
          try expect(mount, ["own": "1000:2000 4750 f"])
          #expect(try (mount.point / "own").attributeNames() == (archive == tar ? ["user.one"] : []))
        }
      }
    }

    @Test("an archive of a user gives that user no rights", .timeLimit(.minutes(1)))
    func ordinaryUser() throws {
      let fixture = try Fixture()
      let archive = try tar(in: fixture.folder)
      let user = UnprivilegedTests.nobody
      try archive.setOwner(user, group: user)
      var setup = try UnprivilegedTests().userSetup(fixture)
      (setup.main, setup.substitutions, setup.options) = (archive, [], ["owners=archive"])
      try withOpenDevice {
        try withMount(setup) { mount in
          let outcome = try Command.shell(
            "cd \"$1\" && stat -c '%n %u:%g %a' setuid setgid folder && ls; cat folder/own; cat setuid",
            mount.point
          ).asUser(user).run()
          let text = outcome.outputText
          #expect(text.hasPrefix("setuid 0:0 755\nsetgid 5:6 755\nfolder 1001:1002 1755\n"), "\(text)")
          #expect(!text.contains("char") && text.hasSuffix("text"))
          #expect(outcome.errorText.contains("folder/own: Permission denied"), "\(outcome.errorText)")
          let entry = try #require(try MountTable.entry(at: mount.point))
          #expect("\(entry)".contains("nosuid") && "\(entry)".contains("nodev"), "\(entry)")
        }
      }
    }
  }
}
