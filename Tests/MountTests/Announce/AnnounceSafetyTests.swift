import Glibc
import Posix
import TestSupport
import Testing

/// The daemon announces through the mount's path while that path comes to lead to real files of the user, which
/// it must never modify.
extension MountTests {
  @Suite(.enabled(if: Mount.hasControl)) struct AnnounceSafetyTests {
    /// Announced changes per test; more than ten thousand in all tests.
    private static let changes = 1800

    /// Content and metadata of everything below a folder, except atime.
    private func fingerprint(_ folder: ByteString) throws -> String {
      try Command.shell(
        #"cd "$1" && find . -printf '%p %y %m %u %n %s %i %T@ %C@ %l\n' | sort && find . -type f -print0 | sort -z | xargs -0r sha256sum"#,
        folder
      ).check().outputText
    }

    /// Creates real files with the announced names.
    private func fill(_ folder: ByteString) throws {
      try folder.makeDirectories()
      for number in 0..<40 { try (folder / ByteString("f\(number)")).write("the user's own \(number)\n") }
    }

    /// Changes a layer before, during and after an action on the mount.
    /// - Parameter victims: folders that must not be modified.
    private func attack(
      _ mount: Mount, _ fixture: Fixture, victims: [ByteString], folder: ByteString = "",
      _ action: () throws -> Void
    ) throws {
      let layer = folder.bytes.isEmpty ? fixture.main : fixture.main / folder
      var churn = LayerChurn(layer)
      let watcher = try MountWatcher(mount.point, [folder])
      for _ in 0..<(Self.changes / 3) { try churn.step() }
      let isAnnounced = try eventually(within: 5) {
        try watcher.readEvents()
        return !watcher.events.isEmpty
      }
      #expect(isAnnounced, "nothing was announced")
      let fingerprints = try victims.map { try fingerprint($0) }
      let sharedChurn = Locked(churn)
      let isStopping = Locked(false)
      let changer = try LoopThread("changer", until: isStopping) { _ in
        try sharedChurn.withLock { try $0.step() }
        Clock.sleep(0.0002)
      }
      try action()
      _ = eventually(within: 30) { changer.iterations >= Self.changes * 2 / 3 || changer.isFinished }
      isStopping.withLock { $0 = true }
      #expect(
        eventually(within: 10) { changer.isFinished } && changer.failure == nil, "\(changer.failure ?? "")")
      Clock.sleep(0.2)
      for (victim, fingerprint) in zip(victims, fingerprints) {
        #expect(try self.fingerprint(victim) == fingerprint, "\(victim) was modified")
      }
      #expect(try sharedChurn.withLock { try $0.differences() } == [])
    }

    private func setup(_ fixture: Fixture) -> MountSetup {
      let setup = fixture.setup("announce=on", "nonempty")
      return setup
    }

    @Test("the mount is unmounted over a folder with the same names", .timeLimit(.minutes(2)))
    func unmounted() throws {
      let fixture = try Fixture(isFilled: false)
      try fill(fixture.point)
      let beneath = try fingerprint(fixture.point)
      let mount = try Mount(setup(fixture))
      defer { mount.abandon() }
      try attack(mount, fixture, victims: []) {
        Clock.sleep(0.1)
        try mount.unmount()
      }
      #expect(try fingerprint(fixture.point) == beneath)
    }

    @Test("the mount is unmounted lazily while its root is open", .timeLimit(.minutes(2)))
    func lazily() throws {
      let fixture = try Fixture(isFilled: false)
      try fill(fixture.point)
      let beneath = try fingerprint(fixture.point)
      let mount = try Mount(setup(fixture))
      defer { mount.abandon() }
      try mount.point.withOpen(O_RDONLY | O_DIRECTORY) { _ in
        try attack(mount, fixture, victims: []) {
          Clock.sleep(0.05)
          try Command([Binary.underTest(), "unmount", "--lazy", mount.point]).check()
        }
        #expect(try fingerprint(fixture.point) == beneath)
      }
      try mount.waitForEnd()
      #expect(try fingerprint(fixture.point) == beneath)
    }

    @Test("a mount over MAIN is unmounted", .timeLimit(.minutes(2)), arguments: [true, false])
    func overMain(isLazy: Bool) throws {
      let fixture = try Fixture(isFilled: false)
      var setup = setup(fixture)
      setup.point = fixture.main
      // Changes reach the layer through a bind mount.
      let path = try fixture.folder.folder("beside")
      try Command("mount", "--bind", fixture.main.text, path.text).check()
      defer { _ = try? Command("umount", "-l", path.text).run() }
      try Command("mount", "--make-private", path.text).check()
      let mount = try Mount(setup)
      defer { mount.abandon() }
      var churn = LayerChurn(path)
      for round in 0..<Self.changes {
        try churn.step()
        if round == Self.changes / 2 {
          let words: [ByteString] = isLazy ? ["unmount", "--lazy"] : ["unmount"]
          try Command([Binary.underTest()] + words + [mount.point]).check()
        }
        if round % 50 == 0 { Clock.sleep(0.002) }
      }
      Clock.sleep(0.2)
      #expect(try churn.differences() == [])
    }

    @Test("another file system with the same names is mounted over the mount", .timeLimit(.minutes(2)))
    func covered() throws {
      let fixture = try Fixture(isFilled: false)
      try withMount(setup(fixture)) { mount in
        let victim = try fixture.folder.folder("victim")
        try fill(victim)
        try attack(mount, fixture, victims: [victim]) {
          for _ in 0..<20 {
            try Command("mount", "--bind", victim.text, mount.point.text).check()
            Clock.sleep(0.01)
            try Command("umount", "-l", mount.point.text).check()
          }
          try Command("mount", "--bind", victim.text, mount.point.text).check()
        }
        // The last bind mount is still there; announcements beneath it count as dropped.
        try Command("umount", mount.point.text).check()
        #expect(try mount.report().announce.dropped > 0)
      }
    }

    @Test("a real folder and a real file are mounted inside the mount", .timeLimit(.minutes(2)))
    func coveredWithin() throws {
      let fixture = try Fixture(isFilled: false)
      try fill(fixture.main / "inside")
      for number in 0..<40 { try (fixture.main / ByteString("inside/f\(number)")).remove() }
      try (fixture.main / "file").write("the layer's")
      let victim = try fixture.folder.folder("victim")
      try fill(victim)
      let file = fixture.folder / "victim-file"
      try file.write("the user's own")
      try withMount(setup(fixture)) { mount in
        try Command("mount", "--bind", file.text, (mount.point / "file").text).check()
        defer { _ = try? Command("umount", "-l", (mount.point / "file").text).run() }
        let before = try file.status()
        try attack(mount, fixture, victims: [victim], folder: "inside") {
          try Command("mount", "--bind", victim.text, (mount.point / "inside").text).check()
          for round in 0..<100 { try (fixture.main / "file").write("change \(round)") }
        }
        #expect(try file.status() == before && file.readText() == "the user's own")
        try Command("umount", "-l", (mount.point / "inside").text).check()
      }
    }

    @Test("folders of a layer become links to real folders", .timeLimit(.minutes(2)))
    func linksInLayers() throws {
      let fixture = try Fixture(isFilled: false)
      let victim = try fixture.folder.folder("victim")
      try fill(victim)
      try fill(fixture.main / "swapped")
      try withMount(setup(fixture)) { mount in
        try mount.warmCaches()
        try attack(mount, fixture, victims: [victim]) {
          let (folder, aside) = (fixture.main / "swapped", fixture.folder / "aside")
          for round in 0..<200 {
            for number in 0..<3 { try (folder / ByteString("f\(number)")).write("change \(round)") }
            try folder.rename(to: aside)
            try folder.makeLink(to: victim)
            Clock.sleep(0.002)
            try folder.remove()
            try aside.rename(to: folder)
          }
          // The final comparison expects the layer without it.
          (folder).removeTree()
        }
      }
    }

    @Test("folders above the mount point become links to real folders", .timeLimit(.minutes(2)))
    func linksAbove() throws {
      let fixture = try Fixture(isFilled: false)
      let (parent, aside) = (try fixture.folder.folder("way"), fixture.folder / "aside")
      let victim = try fixture.folder.folder("victim")
      try fill(victim / "point")
      var setup = setup(fixture)
      setup.point = try fixture.folder.folder("way/point")
      try withMount(setup) { mount in
        try attack(mount, fixture, victims: [victim]) {
          for _ in 0..<100 {
            try parent.rename(to: aside)
            try parent.makeLink(to: victim)
            Clock.sleep(0.002)
            try parent.remove()
            try aside.rename(to: parent)
          }
        }
      }
    }

    @Test("another file system replaces the mount and reuses its device number", .timeLimit(.minutes(2)))
    func deviceNumbers() throws {
      let fixture = try Fixture(isFilled: false)
      for _ in 0..<10 {
        let mount = try Mount(setup(fixture))
        defer { mount.abandon() }
        let device = try #require(MountTableEntry.top(at: mount.point.bytes)).device
        var churn = LayerChurn(fixture.main)
        for name in try fixture.main.names() { try (fixture.main / name).remove() }
        for _ in 0..<50 { try churn.step() }
        // The daemon is stopped while another file system replaces the mount.
        mount.signalWorker(SIGSTOP)
        try Command("umount", "-l", mount.point.text).check()
        try Command("mount", "-t", "tmpfs", "tmpfs", mount.point.text).check()
        defer { _ = try? Command("umount", "-l", mount.point.text).run() }
        try fill(mount.point)
        let before = try fingerprint(mount.point)
        for _ in 0..<50 { try churn.step() }
        mount.signalWorker(SIGCONT)
        try mount.waitForEnd()
        #expect(try fingerprint(mount.point) == before, "device \(device)")
        #expect(try churn.differences() == [])
      }
    }

    @Test("requests of other processes never get the reply of a synthetic change", .timeLimit(.minutes(2)))
    func others() throws {
      let fixture = try Fixture(isFilled: false)
      try withMount(setup(fixture)) { mount in
        let isStopping = Locked(false)
        let granted = Locked<[String]>([])
        let workers = try (0..<3).map { number in
          try LoopThread("other \(number)", until: isStopping) { _ in
            for file in 0..<40 {
              let path = mount.point / ByteString("f\(file)")
              // None of these may succeed.
              if (try? path.makeNode(mode: FileKind.regular.rawValue | 0o600)) != nil {
                granted.withLock { $0.append("mknod") }
              }
              if (try? path.remove()) != nil { granted.withLock { $0.append("unlink") } }
              if (try? path.rename(to: mount.point / "other")) != nil {
                granted.withLock { $0.append("rename") }
              }
              if (try? path.setModified(TimeSpec(seconds: 1, nanoseconds: 0))) != nil {
                granted.withLock { $0.append("utimens") }
              }
              if (try? path.makeDirectory()) != nil { granted.withLock { $0.append("mkdir") } }
            }
          }
        }
        try attack(mount, fixture, victims: []) {}
        // On a busy machine one announcement stands for many changes.
        for name in try fixture.main.names() { try (fixture.main / name).remove() }
        var churn = LayerChurn(fixture.main)
        let areMany = try eventually(within: 30) {
          try churn.step()
          return try mount.report().announce.events > 100
        }
        isStopping.withLock { $0 = true }
        #expect(areMany && eventually(within: 10) { workers.allSatisfy(\.isFinished) })
        #expect(granted.withLock { $0 } == [])
        try mount.barrier()
        try expectMerged([fixture.substitution, fixture.main], at: mount.point)
      }
    }
  }
}
