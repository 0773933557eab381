import Posix
import TestSupport
import Testing

/// Mounting by mount(8), fstab(5) and umount(8).
extension MountTests {
  @Suite struct MountHelperTests {
    @Test(
      "both file system types mount silently", .timeLimit(.minutes(1)),
      arguments: ["bundlefs", "fuse.bundlefs"])
    func types(type: String) throws {
      let fixture = try Fixture()
      let output = try PrivateSystem(fixture).run(
        #"""
        mount -t "$1" "$main" "$point" -o "substitution=$other"
        shown; cat "$point/replaced.txt"; umount "$point"; ls "$point"
        """#, parameters: [ByteString(type)])
      #expect(output == "fuse.bundlefs rw\nsubstitution's replaced, longer\n")
    }

    @Test(
      "an fstab line with foreign options mounts by its mount point alone", .timeLimit(.minutes(1)))
    func fstabLine() throws {
      let fixture = try Fixture()
      let system = try PrivateSystem(fixture)
      try system.add(
        fixture.main, fixture.point, "bundlefs",
        "noauto,nofail,_netdev,x-systemd.automount,x-systemd.requires=network.target,x-systemd.idle-timeout=1min,"
          + "comment=mine,X-other,substitution=\(fixture.substitution.text)")
      let output = try system.run(
        #"""
        mount -a
        findmnt "$point" || echo 'noauto'
        mount "$point"
        cat "$point/replaced.txt"
        fusermount3 -u "$point"
        mount "$main"
        shown
        umount "$main" || umount "$point"
        """#)
      #expect(output.hasPrefix("noauto\nsubstitution's replaced, longer\nfuse.bundlefs rw\n"), "\(output)")
    }

    @Test("mount -a mounts each line once", .timeLimit(.minutes(1)))
    func mountAll() throws {
      let fixture = try Fixture()
      let system = try PrivateSystem(fixture)
      let second = try fixture.folder.folder("second")
      try system.add(
        fixture.main, fixture.point, "fuse.bundlefs", "substitution=\(fixture.substitution.text)")
      try system.add(fixture.substitution, second, "bundlefs", "ro,cache=5")
      let output = try system.run(
        #"""
        mount -a
        mount -a
        shown; shown "$1"
        grep -cE " ($point|$1) " /proc/self/mountinfo
        umount "$1" "$point"
        findmnt "$1" || findmnt "$point" || echo 'none'
        """#, parameters: [second])
      #expect(output == "fuse.bundlefs rw\nfuse.bundlefs ro\n2\nnone\n")
    }

    @Test("paths may contain spaces, commas, colons and backslashes", .timeLimit(.minutes(1)))
    func specialCharacters() throws {
      let fixture = try Fixture()
      let main = try fixture.folder.folder(#"my, main: a\b"#)
      let odd = try fixture.folder.folder(#"over, the: top \ of"#)
      let point = try fixture.folder.folder("here, with spaces")
      try (main / "file").write("main's\n")
      try (odd / "other").write("odd's\n")
      let system = try PrivateSystem(fixture)
      let escaped = MountSetup.escaped(odd).text
      try system.add(
        main, point, "bundlefs",
        "substitution=\(fixture.substitution.text):\(escaped)".replacing(#"\"#, with: #"\134"#)
          .replacing(" ", with: #"\040"#))
      let output = try system.run(
        #"""
        mount "$1"
        cat "$1/file" "$1/other" "$1/replaced.txt"
        umount "$1"
        mount -t bundlefs "$2" "$1" -o "ro,substitution=$3,noexec"
        cat "$1/file" "$1/other"
        umount "$1"
        """#, parameters: [point, main, ByteString(escaped)])
      #expect(output == "main's\nodd's\nsubstitution's replaced, longer\nmain's\nodd's\n")
    }

    @Test("remount refuses what it cannot change", .timeLimit(.minutes(1)))
    func fixedOptions() throws {
      let fixture = try Fixture()
      func remount(_ options: ByteString) throws -> Outcome {
        try Command([try Binary.underTest(), fixture.main, fixture.point, "-o", "remount," + options]).run(
          timeout: 20)
      }
      try withMount(fixture.setup("languages=fr:en", "cache=coherent")) { mount in
        for options in [
          "cache=none", "languages=de", "routes_mode=666", "control=other",
        ] {
          let outcome = try remount(ByteString(options))
          #expect(outcome.status == 1, "\(options)")
          #expect(outcome.errorText.contains("remounting cannot change"), "\(outcome.errorText)")
        }
        let same = "substitution=\(fixture.substitution)/,languages=fr:en,cache=coherent,xattr=on,ro"
        #expect(try remount(ByteString(same)).status == 0)
        #expect(try MountTable.entry(at: mount.point)?.options.hasPrefix("ro") == true)
        #expect(try remount("rw").status == 0)
        try expectFixture(at: mount.point)
      }
    }

    @Test("remount changes the control file's writability and other flags", .timeLimit(.minutes(1)))
    func remount() throws {
      let fixture = try Fixture()
      let system = try PrivateSystem(fixture)
      try system.add(
        fixture.main, fixture.point, "bundlefs", "noexec,substitution=\(fixture.substitution.text)")
      let output = try system.run(
        #"""
        post() { { echo "$1" > "$point/.routes"; } 2>/dev/null && echo "$1" || echo "no $1"; }
        mount "$point"
        post 'route A i:A'
        mount -o remount,ro "$point"
        shown; post 'route B i:B'
        findmnt -n -o VFS-OPTIONS "$point" | grep -o 'nosuid,nodev,noexec'
        mount -o remount,rw "$point"
        shown; post 'route C s:C'
        mount -o remount,exec "$point"
        findmnt -n -o VFS-OPTIONS "$point" | grep -o noexec || echo exec
        grep -c '^route' "$point/.routes"
        cat "$point/replaced.txt"
        umount "$point"
        mount -o remount,ro "$point" &>/dev/null && echo 'wrong' || echo 'nothing there'
        """#)
      #expect(
        output.split(separator: "\n").map(String.init) == [
          "route A i:A", "fuse.bundlefs ro", "no route B i:B", "nosuid,nodev,noexec", "fuse.bundlefs rw",
          "route C s:C", "exec", "2", "substitution's replaced, longer",
          "nothing there",
        ])
    }

    @Test("mount(8) flags: -f checks without mounting; -s, -n, -v and -r", .timeLimit(.minutes(1)))
    func flags() throws {
      let fixture = try Fixture()
      let output = try PrivateSystem(fixture).run(
        #"""
        mount -f -t bundlefs "$main" "$point"
        findmnt "$point" || echo 'not mounted'
        mount -f -t bundlefs "$main" "$point/missing" &>/dev/null && echo 'wrong' || echo "status $?"
        mount -t bundlefs "$main" "$point" -o frobnicate &>/dev/null && echo 'wrong' || echo "status $?"
        mount -s -n -r -t bundlefs "$main" "$point" -o frobnicate
        shown
        umount "$point"
        """#)
      #expect(output == "not mounted\nstatus 1\nstatus 2\nfuse.bundlefs ro\n")
    }

    @Test("mount -N mounts in another mount namespace", .timeLimit(.minutes(1)))
    func otherNamespace() throws {
      let fixture = try Fixture()
      let output = try PrivateSystem(fixture).run(
        #"""
        unshare --mount --propagation private sleep 40 &
        other=$!
        until [ "$(readlink /proc/$other/ns/mnt)" != "$(readlink /proc/self/ns/mnt)" ]; do sleep 0.05; done
        mount -N $other -t bundlefs "$main" "$point"
        findmnt "$point" || echo 'not here'
        nsenter --mount --target $other cat "$point/plain.txt"
        umount -N $other "$point"
        kill $other
        """#)
      #expect(output == "not here\nmain's plain\n")
    }

    @Test("after umount -l an open reader continues, then the daemon exits", .timeLimit(.minutes(1)))
    func lazyUnmount() throws {
      let fixture = try Fixture()
      let output = try PrivateSystem(fixture).run(
        #"""
        mount -t bundlefs "$main" "$point" -o "substitution=$other"
        exec 3< "$point/plain.txt"
        umount "$point" &>/dev/null && echo 'wrong' || echo 'busy'
        umount -l "$point"
        findmnt "$point" || echo 'gone'
        cat <&3
        exec 3<&-
        """#)
      #expect(output == "busy\ngone\nmain's plain\n")
    }

    @Test("mount(8) clears the stale mount of a killed daemon", .timeLimit(.minutes(1)))
    func staleMount() throws {
      let fixture = try Fixture()
      let system = try PrivateSystem(fixture)
      try system.add(fixture.main, fixture.point, "bundlefs", "substitution=\(fixture.substitution.text)")
      let output = try system.run(
        #"""
        mount "$point"
        kill -KILL $(pgrep -f "^/sbin/mount.bundlefs $main $point")
        until ! ls "$point" 2>/dev/null; do sleep 0.05; done
        mount "$point"
        cat "$point/plain.txt"
        grep -cF " $point " /proc/self/mountinfo
        umount "$point"
        """#)
      #expect(output.hasSuffix("main's plain\n1\n"), "\(output)")
    }

    @Test(
      "an unprivileged user mounts only lines with `user`, and no other user unmounts them",
      .timeLimit(.minutes(1)))
    func unprivilegedUser() throws {
      let fixture = try Fixture()
      let system = try PrivateSystem(fixture)
      let roots = try fixture.folder.folder("roots")
      for folder in [fixture.main, fixture.substitution, fixture.point] {
        try Command("chown", "-Rh", "nobody", folder.text).check()
      }
      try system.add(fixture.main, roots, "bundlefs", "noauto")
      try system.add(
        fixture.main, fixture.point, "bundlefs", "noauto,user,substitution=\(fixture.substitution.text)")
      try withOpenDevice {
        let output = try system.run(
          #"""
          as() { setpriv --reuid "$1" --regid "$1" --clear-groups "${@:2}"; }
          as 65534 mount "$1" &>/dev/null && echo 'wrong' || echo 'not that'
          as 65534 mount "$point"
          as 65534 cat "$point/replaced.txt"
          findmnt -n -o VFS-OPTIONS "$point" | grep -o 'nosuid,nodev,noexec'
          as 2 umount "$point" &>/dev/null && echo 'wrong' || echo 'not he'
          as 65534 umount "$point"
          findmnt "$point" || echo 'gone'
          as 65534 mount "$point"
          as 65534 fusermount3 -u "$point"
          """#, parameters: [roots])
        #expect(output == "not that\nsubstitution's replaced, longer\nnosuid,nodev,noexec\nnot he\ngone\n")
      }
    }
  }
}
