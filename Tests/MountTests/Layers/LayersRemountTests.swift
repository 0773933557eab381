import Posix
import TestSupport
import Testing

/// `-o remount,substitution=…`.
extension MountTests {
  @Suite struct LayersRemountTests {
    @Test("a remount changes the substitutions and the flags, or nothing", .timeLimit(.minutes(1)))
    func direct() throws {
      let fixture = try LayersFixture()
      try withMount(fixture.setup("a")) { mount in
        func flags() throws -> String { try MountTable.entry(at: mount.point)?.options ?? "" }
        func expectChange(_ options: ByteString, location: SourceLocation = #_sourceLocation) throws {
          let outcome = try fixture.remount(options)
          #expect(outcome.status == 0, "\(options): \(outcome.errorText)", sourceLocation: location)
        }
        try expectChange("substitution=mods/b:mods/a")
        try fixture.expect("b", "a")
        try expectChange("substitution=mods/c.zip,substitution=mods/a,ro,noexec")
        try fixture.expect("c.zip", "a")
        #expect(try flags().hasPrefix("ro,") && flags().contains("noexec"))
        try expectChange("substitution=mods/b,ro")
        try fixture.expect("b")
        #expect(try flags().hasPrefix("ro,"))

        let missing = try fixture.remount("rw,substitution=mods/none")
        #expect(missing.status == 1 && missing.errorText.contains("mods/none"), "\(missing.errorText)")
        let fixed = try fixture.remount("rw,substitution=mods/a,cache=none")
        #expect(
          fixed.status == 1 && fixed.errorText.contains("cannot change 'cache=none'"), "\(fixed.errorText)")
        try fixture.expect("b")
        #expect(try flags().hasPrefix("ro,"))

        try expectChange("rw,substitution=")
        try fixture.expect()
        #expect(try flags().hasPrefix("rw,"))
      }
    }

    @Test("a remount with 'ro' while a file is open for writing changes nothing", .timeLimit(.minutes(1)))
    func busy() throws {
      let fixture = try LayersFixture()
      try withMount(fixture.setup("a")) { mount in
        let control = try Descriptor.open((mount.point / ".routes").bytes, [.write])
        let outcome = try fixture.remount("noexec,ro,substitution=mods/b")
        #expect(outcome.status == 1 && outcome.errorText.contains("busy"), "\(outcome.errorText)")
        try fixture.expect("a")
        let flags = try #require(try MountTable.entry(at: mount.point)).options
        #expect(flags.hasPrefix("rw,") && !flags.contains("noexec"))
        withExtendedLifetime(control) {}
      }
    }

    @Test("a remount refuses another MAIN", .timeLimit(.minutes(1)))
    func otherMain() throws {
      let fixture = try LayersFixture()
      let other = try fixture.folder.folder("other")
      try withMount(fixture.setup("a", options: ["fsname=bundle"])) { mount in
        func remount(_ main: ByteString) throws -> Outcome {
          try Command(
            [try Binary.underTest(), main, mount.point, "-o", "remount,substitution=mods/b"],
            directory: fixture.folder.path
          ).run(timeout: 30)
        }
        let outcome = try remount(other)
        #expect(outcome.status == 1 && outcome.errorText.split(separator: "\n").count == 1)
        #expect(outcome.errorText.contains("cannot change MAIN '\(other)'; it is '\(fixture.main)'"))
        try fixture.expect("a")
        // mount(8) takes the name from the mount table.
        #expect(try remount("bundle").status == 0)
        try fixture.expect("b")
      }
    }

    @Test("mount(8) without an fstab line passes what the kernel shows", .timeLimit(.minutes(1)))
    func noLine() throws {
      let fixture = try Fixture()
      let output = try PrivateSystem(fixture).run(
        #"""
        mkdir "$point.other"; echo other > "$point.other/replaced.txt"
        mount -t bundlefs "$main" "$point" -o "allow_other,max_read=65536,substitution=$other"
        mount -o "remount,substitution=$point.other" "$point"; cat "$point/replaced.txt"
        mount -o remount,ro "$point"; shown; cat "$point/replaced.txt"
        mount -o "remount,rw,substitution=$other" "$main"; shown; cat "$point/replaced.txt"
        mount -t bundlefs -o remount,substitution= "$main" "$point"; cat "$point/replaced.txt"
        mount -o remount,languages=fr "$point" &>/dev/null && echo wrong || echo refused
        umount "$point"
        """#)
      #expect(
        output == """
          other
          fuse.bundlefs ro
          other
          fuse.bundlefs rw
          substitution's replaced, longer
          main's replaced
          refused

          """)
    }

    @Test("options of mount(8) replace those of the fstab line, which count alone", .timeLimit(.minutes(1)))
    func line() throws {
      let fixture = try Fixture()
      let system = try PrivateSystem(fixture)
      let point = fixture.point.text
      try Command("mkdir", point + ".1", point + ".2").check()
      for number in ["1", "2"] {
        try ByteString("\(point).\(number)/replaced.txt").write("layer \(number)\n")
      }
      try system.add(
        fixture.main, fixture.point, "bundlefs",
        "noexec,substitution=\(fixture.substitution.text):\(point).1,substitution=\(point).2")
      let output = try system.run(
        #"""
        layers() { bundlefs layers "$point" | sed 's|.*/||' | paste -s -d ' '; }
        mount "$point"; layers
        mount -o "remount,substitution=$point.2" "$point"; layers
        mount -o "remount,substitution=$point.1,substitution=$point.2" "$point"; layers
        mount -o remount,substitution= "$point"; layers
        mount -o remount,ro "$point"; layers; shown
        line=$(sed "s|,substitution=$point.2||" /etc/fstab); echo "$line" > /etc/fstab
        mount -o remount,rw "$point"; layers; shown
        umount "$point"
        """#)
      #expect(
        output == """
          substitution mount.1 mount.2 main
          mount.2 main
          mount.1 mount.2 main
          main
          substitution mount.1 mount.2 main
          fuse.bundlefs ro
          substitution mount.1 main
          fuse.bundlefs rw

          """)
    }
  }
}
