import Glibc
import Posix
import TestSupport
import Testing

/// While changes are announced, the mount's path comes to lead to real files of the user's: none of them may ever
/// be touched.
extension MountTests {
  @Suite(.enabled(if: Mount.hasControl)) struct AttackTests {
    /// Changes that are announced in each case; all cases together make more than ten thousand.
    private static let changes = 1800

    /// A layer's folder that is changed all the time by this process alone, which knows what it must contain.
    private struct Churn {
      let layer: ByteString
      private var expected: [ByteString: StatResult] = [:]
      private var random = SplitMix64(seed: 8)
      private var number = 0

      init(_ layer: ByteString) { self.layer = layer }

      /// One change to one of a few names, so that they exist in the real folder beneath, too.
      mutating func step() throws {
        number += 1
        let name = ByteString("f\(random.number(0...39))")
        let path = layer / name
        let isThere = expected[name] != nil
        let isLink = expected[name]?.kind == .symbolicLink
        switch random.number(0...4) {
        case 0 where isThere:
          try path.remove()
          expected[name] = nil
        case 1 where isThere:
          let other = ByteString("f\(random.number(0...39))")
          try path.rename(to: layer / other)
          if other != name { expected[name] = nil }
          expected[other] = try (layer / other).status()
        case 2 where isThere && !isLink:
          try path.setMode(UInt32(random.pick([0o644, 0o600, 0o640])))
          expected[name] = try path.status()
        case 3 where !isThere:
          try path.makeLink(to: "f1")
          expected[name] = try path.status()
        default:
          if isLink { try path.remove() }
          try path.write("change \(number)\n")
          expected[name] = try path.status()
        }
      }

      /// What is otherwise than this process left it.
      func differences() throws -> [String] {
        let names = Set(try layer.names())
        let strange = names.symmetricDifference(expected.keys).map { "\($0): there or not" }
        return try strange
          + expected.filter { names.contains($0.key) }.compactMap { name, status in
            let now = try (layer / name).status()
            return now == status ? nil : "\(name): \(now) instead of \(status)"
          }
      }
    }

    /// Everything about the files below a folder, but for the time of access.
    private func seal(_ folder: ByteString) throws -> String {
      try Command.shell(
        #"cd "$1" && find . -printf '%p %y %m %u %n %s %i %T@ %C@ %l\n' | sort && find . -type f -print0 | sort -z | xargs -0r sha256sum"#,
        folder
      ).check().outputText
    }

    /// Real files by the names that are announced.
    private func fill(_ folder: ByteString) throws {
      try folder.makeDirectories()
      for number in 0..<40 { try (folder / ByteString("f\(number)")).write("the user's own \(number)\n") }
    }

    /// Changes a layer before, while and after something happens to the mount.
    /// - Parameter victims: folders that must stay as they are.
    private func attack(
      _ mount: Mount, _ fixture: Fixture, victims: [ByteString], folder: ByteString = "",
      _ happening: () throws -> Void
    ) throws {
      let layer = folder.bytes.isEmpty ? fixture.main : fixture.main / folder
      var churn = Churn(layer)
      let watcher = try MountWatcher(mount.point, [folder])
      for _ in 0..<(Self.changes / 3) { try churn.step() }
      let isHeard = try eventually(within: 5) {
        try watcher.hear()
        return !watcher.events.isEmpty
      }
      #expect(isHeard, "nothing was announced at all")
      let seals = try victims.map { try seal($0) }
      let worker = Locked(churn)
      let isStopping = Locked(false)
      let changer = try Worker("changer", until: isStopping) { _ in
        try worker.withLock { try $0.step() }
        Clock.sleep(0.0002)
      }
      try happening()
      _ = eventually(within: 30) { changer.beats >= Self.changes * 2 / 3 || changer.isOver }
      isStopping.withLock { $0 = true }
      #expect(eventually(within: 10) { changer.isOver } && changer.problem == nil, "\(changer.problem ?? "")")
      Clock.sleep(0.2)
      for (victim, seal) in zip(victims, seals) {
        #expect(try self.seal(victim) == seal, "\(victim) was touched")
      }
      #expect(try worker.withLock { try $0.differences() } == [])
    }

    private func setup(_ fixture: Fixture) -> MountSetup {
      var setup = fixture.setup
      setup.options = ["announce=on"]
      return setup
    }

    @Test("the mount is unmounted, and the folder beneath has the same names", .timeLimit(.minutes(2)))
    func unmounted() throws {
      let fixture = try Fixture(isFilled: false)
      try fill(fixture.point)
      let beneath = try seal(fixture.point)
      let mount = try Mount(setup(fixture))
      defer { mount.abandon() }
      try attack(mount, fixture, victims: []) {
        Clock.sleep(0.1)
        try mount.unmount()
      }
      #expect(try seal(fixture.point) == beneath)
    }

    @Test("the mount is unmounted lazily, while somebody stands in it", .timeLimit(.minutes(2)))
    func lazily() throws {
      let fixture = try Fixture(isFilled: false)
      try fill(fixture.point)
      let beneath = try seal(fixture.point)
      let mount = try Mount(setup(fixture))
      defer { mount.abandon() }
      try mount.point.withOpen(O_RDONLY | O_DIRECTORY) { _ in
        try attack(mount, fixture, victims: []) {
          Clock.sleep(0.05)
          try Command([Binary.underTest(), "unmount", "--lazy", mount.point]).check()
        }
        #expect(try seal(fixture.point) == beneath)
      }
      try mount.waitForEnd()
      #expect(try seal(fixture.point) == beneath)
    }

    @Test("the mount lies over MAIN, and goes", .timeLimit(.minutes(2)), arguments: [true, false])
    func overMain(isLazy: Bool) throws {
      let fixture = try Fixture(isFilled: false)
      var setup = setup(fixture)
      setup.point = fixture.main
      // The layer that is changed is reached by another path.
      let path = try fixture.folder.folder("beside")
      try Command("mount", "--bind", fixture.main.text, path.text).check()
      defer { _ = try? Command("umount", "-l", path.text).run() }
      try Command("mount", "--make-private", path.text).check()
      let mount = try Mount(setup)
      defer { mount.abandon() }
      var churn = Churn(path)
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

    @Test("another file system with the same names covers the mount", .timeLimit(.minutes(2)))
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
        // The last one is still there; what could not be announced beneath it is counted.
        try Command("umount", mount.point.text).check()
        #expect(try mount.report().announce.dropped > 0)
      }
    }

    @Test("a real folder is mounted on a folder of the mount, a real file on a file", .timeLimit(.minutes(2)))
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

    @Test("folders of the layer become links to real folders", .timeLimit(.minutes(2)))
    func linksInLayers() throws {
      let fixture = try Fixture(isFilled: false)
      let victim = try fixture.folder.folder("victim")
      try fill(victim)
      try fill(fixture.main / "swapped")
      try withMount(setup(fixture)) { mount in
        try mount.look()
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
          // The test of the layer wants it as it was.
          RemovedTreeInLayer.remove(folder)
        }
      }
    }

    @Test("folders on the way to the mount become links to real folders", .timeLimit(.minutes(2)))
    func linksAbove() throws {
      let fixture = try Fixture(isFilled: false)
      let (way, aside) = (try fixture.folder.folder("way"), fixture.folder / "aside")
      let victim = try fixture.folder.folder("victim")
      try fill(victim / "point")
      var setup = setup(fixture)
      setup.point = try fixture.folder.folder("way/point")
      try withMount(setup) { mount in
        try attack(mount, fixture, victims: [victim]) {
          for _ in 0..<100 {
            try way.rename(to: aside)
            try way.makeLink(to: victim)
            Clock.sleep(0.002)
            try way.remove()
            try aside.rename(to: way)
          }
        }
      }
    }

    @Test("another file system takes the mount's place and its device number", .timeLimit(.minutes(2)))
    func deviceNumbers() throws {
      let fixture = try Fixture(isFilled: false)
      for _ in 0..<10 {
        let mount = try Mount(setup(fixture))
        defer { mount.abandon() }
        let device = try #require(MountTableEntry.top(at: mount.point.bytes)).device
        var churn = Churn(fixture.main)
        for name in try fixture.main.names() { try (fixture.main / name).remove() }
        for _ in 0..<50 { try churn.step() }
        // The daemon is held up while the mount goes and another one comes.
        mount.process.signal(SIGSTOP)
        try Command("umount", "-l", mount.point.text).check()
        try Command("mount", "-t", "tmpfs", "tmpfs", mount.point.text).check()
        defer { _ = try? Command("umount", "-l", mount.point.text).run() }
        try fill(mount.point)
        let before = try seal(mount.point)
        for _ in 0..<50 { try churn.step() }
        mount.process.signal(SIGCONT)
        try mount.waitForEnd()
        #expect(try seal(mount.point) == before, "device \(device)")
        #expect(try churn.differences() == [])
      }
    }

    @Test("nobody else's request gets a replay's answer", .timeLimit(.minutes(2)))
    func others() throws {
      let fixture = try Fixture(isFilled: false)
      try withMount(setup(fixture)) { mount in
        let isStopping = Locked(false)
        let granted = Locked<[String]>([])
        let workers = try (0..<3).map { number in
          try Worker("other \(number)", until: isStopping) { _ in
            for file in 0..<40 {
              let path = mount.point / ByteString("f\(file)")
              // Whatever is there, none of them may succeed.
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
        isStopping.withLock { $0 = true }
        #expect(eventually(within: 10) { workers.allSatisfy(\.isOver) })
        #expect(granted.withLock { $0 } == [])
        try mount.barrier()
        try expectMerged([fixture.substitution, fixture.main], at: mount.point)
        #expect(try mount.report().announce.events > 100)
      }
    }
  }
}
