import Glibc
import Posix
import TestSupport
import Testing

/// Changes of a mount's substitutions while programs use it.
extension MountTests {
  @Suite(.enabled(if: Mount.hasControl)) struct LayerSwitchTests {
    /// A fixture with two more substitutions, which override "plain.txt" and add a file each.
    private struct Stacks {
      let fixture: Fixture
      let one: ByteString
      let two: ByteString

      init() throws {
        fixture = try Fixture()
        (one, two) = (try fixture.folder.folder("one"), try fixture.folder.folder("two"))
        for (layer, name) in [(one, "one"), (two, "two")] {
          try (layer / "plain.txt").write("\(name)'s plain\n")
          try (layer / ByteString(name)).write("added by \(name)\n")
        }
      }
    }

    @Test("substitutions come, go and change places", .timeLimit(.minutes(1)))
    func order() throws {
      let stacks = try Stacks()
      let (fixture, one, two) = (stacks.fixture, stacks.one, stacks.two)
      try withMount(fixture.setup) { mount in
        try expectFixture(at: mount.point)
        for (layers, plain) in [
          ([one, two], "one's plain\n"), ([two, one], "two's plain\n"), ([two], "two's plain\n"),
          ([], "main's plain\n"), ([one, fixture.substitution], "one's plain\n"),
        ] {
          try mount.setLayers(layers)
          #expect(try mount.layers() == (layers + [fixture.main]).map(\.text))
          let option = try mount.report().options["substitution"]
          #expect(option == layers.map(\.text).joined(separator: ":"))
          #expect(try (mount.point / "plain.txt").readText() == plain)
          #expect((mount.point / "one").exists == layers.contains(one))
          #expect((mount.point / "two").exists == layers.contains(two))
        }
        try mount.setLayers([fixture.substitution])
        try expectFixture(at: mount.point)
        #expect(try mount.report().survival?.restarts == 0)
      }
    }

    @Test("the root's attributes are those of the new layer on top", .timeLimit(.minutes(1)))
    func root() throws {
      let stacks = try Stacks()
      try stacks.one.setMode(0o700)
      try stacks.two.setMode(0o711)
      try withMount(stacks.fixture.setup) { mount in
        // The only node that the kernel knows.
        _ = try mount.point.status()
        for (layers, mode) in [
          ([stacks.one], 0o700), ([stacks.two, stacks.one], 0o711), ([stacks.one], 0o700),
        ] {
          try mount.setLayers(layers)
          #expect(try mount.point.status().permissions == UInt32(mode))
        }
      }
    }

    @Test(
      "a stack with a bad layer is refused whole, and the result names the layer", .timeLimit(.minutes(1)))
    func refusals() throws {
      let stacks = try Stacks()
      let (fixture, one) = (stacks.fixture, stacks.one)
      try (fixture.folder / "file").write("no archive")
      try withMount(fixture.setup) { mount in
        let before = try mount.layers()
        let refused: [(layer: ByteString, error: Errno, name: String)] = [
          (fixture.folder / "nothing", .noSuchFileOrDirectory, "ENOENT"),
          (fixture.folder / "file", .notDirectory, "ENOTDIR"),
          (mount.point / "folder", .invalidArgument, "EINVAL"), ("relative", .invalidArgument, "EINVAL"),
        ]
        for (layer, error, name) in refused {
          try expectErrno(error, "\(layer)") { try mount.setLayers([one, layer]) }
          let last = try mount.controlFile.readText().split(separator: "\n").last ?? ""
          #expect(last.contains("\"\(name)\""), "\(last)")
          #expect(last.contains(layer.text), "\(last)")
          #expect(try mount.layers() == before)
        }
        try expectErrno(.invalidArgument) { try mount.writeControl("bundlefs:///layers?main=/tmp\n") }
        try expectFixture(at: mount.point)
      }
    }

    @Test("a layer that may be missing is left out until it comes", .timeLimit(.minutes(1)))
    func missing() throws {
      let fixture = try Fixture()
      let later = fixture.folder / "later"
      try withMount(fixture.setup("missing=empty")) { mount in
        try mount.setLayers([later, fixture.substitution])
        try expectFixture(at: mount.point)
        try later.makeDirectory()
        try (later / "plain.txt").write("later's plain\n")
        try mount.barrier()
        #expect(try (mount.point / "plain.txt").readText() == "later's plain\n")
        try later.rename(to: fixture.folder / "off")
        try mount.barrier()
        #expect(try !mount.command("diff").outputText.contains("plain.txt"))
        // The order of what is absent changes, too.
        try mount.setLayers([fixture.substitution, later])
        try expectFixture(at: mount.point)
        try (fixture.folder / "off").rename(to: later)
        try mount.barrier()
        #expect(try (mount.point / "plain.txt").readText() == "later's plain\n")
        mount.signalWorker(SIGKILL)
        #expect(try mount.layers() == [fixture.substitution, later, fixture.main].map(\.text))
      }
      let other = fixture.folder / "other"
      var setup = fixture.setup("missing=empty")
      setup.substitutions = [other, fixture.substitution]
      try withMount(setup) { mount in
        try expectFixture(at: mount.point)
        let layers = try mount.command("layers").outputText
        #expect(
          layers.contains(other.text + "  (its path does not lead to a directory, so it is left out)"),
          "\(layers)")
      }
    }

    @Test("without survival the stack cannot be changed", .timeLimit(.minutes(1)))
    func unsupported() throws {
      let fixture = try Fixture()
      try withMount(fixture.setup("survive=off")) { mount in
        try expectErrno(.notSupported) { try mount.setLayers([]) }
        try expectFixture(at: mount.point)
      }
    }

    @Test("open files, mappings and folders of a layer that goes stay", .timeLimit(.minutes(2)))
    func openFiles() throws {
      let stacks = try Stacks()
      let fixture = stacks.fixture
      let content = (0..<4_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }
      try (stacks.one / "large").write(content)
      try (stacks.one / "folder").makeDirectory()
      let archive = fixture.folder / "a.zip"
      try archive.write(ZipBuilder([.init("packed", content, .deflated)]).bytes)
      var setup = fixture.setup
      setup.substitutions = [stacks.one, archive]
      try withMount(setup) { mount in
        let files = try ["large", "packed"].map {
          SharedDescriptor(try Descriptor.open((mount.point / ByteString($0)).bytes, [.read]))
        }
        let mapping = mmap(nil, content.count, PROT_READ, MAP_SHARED, files[0].descriptor.rawValue, 0)
        let bytes = try #require(mapping.flatMap { $0 == MAP_FAILED ? nil : $0 })
        defer { munmap(bytes, content.count) }
        let folder = try Descriptor.open((mount.point / "folder").bytes, [.read, .directory])
        var read: [[UInt8]] = [[], []]
        for step in 0..<10 {
          for (index, file) in files.enumerated() {
            read[index] += try file.descriptor.bytes(at: read[index].count, count: content.count / 10)
          }
          try mount.setLayers(step % 2 == 0 ? [fixture.substitution] : [stacks.two])
          if step == 0 {
            try archive.remove()
            try (stacks.one / "large").remove()
          }
          #expect(!(mount.point / "large").exists && !(mount.point / "packed").exists)
          // MAIN has the folder too.
          #expect(try folder.attributes().isDirectory)
          let inner = ByteString("/proc/self/fd/\(folder.rawValue)/inner.txt")
          #expect(try inner.readText() == "main's inner\n")
        }
        #expect(read[0] == content && read[1] == content)
        #expect(UnsafeRawBufferPointer(start: bytes, count: content.count).elementsEqual(content))
      }
    }

    @Test("a layer that goes is closed when its last reader is done", .timeLimit(.minutes(2)))
    func closedLayers() throws {
      let stacks = try Stacks()
      let fixture = stacks.fixture
      let archive = fixture.folder / "a.zip"
      try archive.write(ZipBuilder([.init("packed", "of the archive"), .init("unread", "")]).bytes)
      let other = fixture.folder / "other.zip"
      try other.write(ZipBuilder([.init("plain.txt", "of the other\n")]).bytes)
      var setup = fixture.setup
      setup.substitutions = [other, archive]
      try withMount(setup) { mount in
        #expect(try mount.opens(archive) && mount.opens(other))
        #expect(try (mount.point / "plain.txt").readText() == "of the other\n")
        #expect((mount.point / "unread").exists)
        do {
          let file = try Descriptor.open((mount.point / "packed").bytes, [.read])
          #expect(try file.bytes(at: 0, count: 2) == Array("of".utf8))
          try mount.setLayers([stacks.two])
          // No program reads it.
          #expect(eventually(within: 60) { (try? mount.opens(other)) == false })
          #expect(try mount.opens(archive))
          // The successor keeps it open, too.
          mount.signalWorker(SIGKILL)
          #expect(try file.bytes(at: 2, count: 12) == Array(" the archive".utf8))
        }
        #expect(eventually(within: 60) { (try? mount.opens(archive)) == false })
        #expect(try (mount.point / "plain.txt").readText() == "two's plain\n")
        try mount.setLayers([archive, other])
        #expect(try (mount.point / "packed").readText() == "of the archive")
        #expect(try (mount.point / "plain.txt").readText() == "of the other\n")
      }
    }

    @Test("archives that come and go leave standard input open", .timeLimit(.minutes(1)))
    func standardInput() throws {
      let fixture = try Fixture()
      let archive = fixture.folder / "a.zip"
      try archive.write(ZipBuilder([.init("packed", "of the archive")]).bytes)
      try withMount(fixture.setup) { mount in
        _ = try mount.point.status()
        let input = try mount.standardInput()
        for layers in [[archive, fixture.substitution], [fixture.substitution], []] {
          try mount.setLayers(layers)
          _ = try (mount.point / "plain.txt").status()
          #expect(eventually(within: 10) { (try? mount.standardInput()) == input })
        }
      }
    }

    @Test("unchanged files keep their inode numbers and pages", .timeLimit(.minutes(1)))
    func unchangedFiles() throws {
      let stacks = try Stacks()
      let fixture = stacks.fixture
      let folders: [ByteString] = ["many/a", "many/b"]
      try fixture.fill(folders: folders, files: 40)
      // So that no change is so recent that another one could have the same time.
      let names = try folders.flatMap { folder in
        try (fixture.main / folder).names().map { fixture.main / folder / $0 }
      }
      let age = try #require(names.first)
      #expect(
        eventually(within: 20) { (try? TimeSpec.now.milliseconds(since: age.status().changed)) ?? 0 > 100 })
      let warm = folders.flatMap { folder in
        (0..<40).flatMap { [folder / ByteString("m\($0)"), folder / ByteString("s\($0)")] }
      }
      try withMount(fixture.setup) { mount in
        func readAll() throws -> [UInt64] {
          try warm.map { path in
            _ = try (mount.point / path).read()
            return try (mount.point / path).status().inode
          }
        }
        let before = try readAll()
        _ = try readAll()
        // At once, while the processes that serve them still compare what they have inherited.
        for count in [1, 0, 1, 0, 1] {
          try mount.setLayers([stacks.one].prefix(count) + [fixture.substitution])
        }
        let reads = try mount.report().requests["READ"] ?? 0
        let lookups = try mount.report().requests["LOOKUP"] ?? 0
        #expect(try readAll() == before)
        #expect(try mount.report().requests["READ"] ?? 0 == reads)
        // The root has changed, and with it only the name "many".
        #expect(try (mount.report().requests["LOOKUP"] ?? 0) - lookups <= 2)
      }
    }

    @Test("200 changes under readers leave no descriptor, watch or node behind", .timeLimit(.minutes(5)))
    func manyChanges() throws {
      let stacks = try Stacks()
      let fixture = stacks.fixture
      try withMount(fixture.setup) { mount in
        let script = """
          while [ ! -e "$1" ]; do
            find "$0" > /dev/null || echo "find failed"
            [ "$(cat "$0/only/deep/file.txt")" = deep ] || echo "wrong"
            case "$(cat "$0/plain.txt")" in *plain) ;; *) echo "wrong plain";; esac
          done
          """
        let end = fixture.folder / "end"
        let readers = try (0..<8).map { _ in
          try Child(Command("sh", "-c", script, mount.point.text, end.text))
        }
        defer { for reader in readers { try? reader.kill() } }
        func change(_ count: Int) throws {
          for step in 0..<count {
            try mount.setLayers(
              step % 2 == 0 ? [stacks.one, fixture.substitution] : [fixture.substitution])
          }
        }
        try change(20)
        // The kernel knows the nodes of the whole tree, each with a descriptor, at both counts.
        try Command("ls", "-lR", mount.point.text).check()
        let before = try mount.openDescriptors()
        let watches = try mount.report().watches
        try change(200)
        try end.write("")
        for reader in readers {
          let outcome = try reader.wait(timeout: 60)
          // A name that goes between its listing and its lookup is no error of the mount.
          let faults = outcome.errorText.split(separator: "\n").filter { !$0.contains("No such file") }
          #expect(outcome.status == 0 && faults.isEmpty, "\(faults.prefix(5))")
          let wrong = outcome.outputText.split(separator: "\n").filter { !$0.hasPrefix("find failed") }
          #expect(wrong.isEmpty, "\(wrong.prefix(5))")
        }
        try mount.setLayers([fixture.substitution])
        try expectFixture(at: mount.point)
        try Command("ls", "-lR", mount.point.text).check()
        // Those of dead workers are closed on a thread of its own.
        #expect(eventually(within: 20) { (try? mount.openDescriptors()) ?? .max <= before + 8 })
        #expect(try mount.report().watches <= watches + 8)
      }
    }

    @Test("a death during a change loses neither the change nor the mount", .timeLimit(.minutes(2)))
    func deaths() throws {
      let stacks = try Stacks()
      let fixture = stacks.fixture
      var random = SplitMix64(seed: 18)
      try withMount(fixture.setup) { mount in
        // Until the first worker has replied to INIT, its death ends the mount.
        _ = try mount.point.status()
        for round in 0..<40 {
          let worker = mount.worker
          let delay = UInt32.random(in: 0..<20_000, using: &random)
          let killer = ThreadHandle(
            try Thread(name: "killer") {
              usleep(delay)
              kill(worker, SIGKILL)
            })
          let layers = round % 2 == 0 ? [stacks.one] : [stacks.two, stacks.one]
          try mount.setLayers(layers)
          killer.join()
          #expect(
            try (mount.point / "plain.txt").readText() == (round % 2 == 0 ? "one's plain\n" : "two's plain\n")
          )
          #expect(try mount.layers() == (layers + [fixture.main]).map(\.text))
        }
      }
    }

    @Test("the layer that takes changes stays on top", .timeLimit(.minutes(1)))
    func writable() throws {
      let stacks = try Stacks()
      let fixture = stacks.fixture
      try withMount(fixture.setup("writable")) { mount in
        try (mount.point / "written").write("before")
        let file = try Descriptor.open((mount.point / "written").bytes, [.readWrite])
        try mount.setLayers([stacks.one])
        #expect(try mount.layers() == [fixture.substitution, stacks.one, fixture.main].map(\.text))
        #expect(try (mount.point / "plain.txt").readText() == "one's plain\n")
        try file.writeInOneCall(Array("after!".utf8))
        try (mount.point / "plain.txt").overwrite(Array("mines".utf8), at: 0)
        #expect(try (fixture.substitution / "written").readText() == "after!")
        #expect(try (fixture.substitution / "plain.txt").readText() == "mines plain\n")
        try expectErrno(.invalidArgument) { try mount.setLayers([stacks.one, fixture.substitution]) }
        try expectErrno(.invalidArgument) { try mount.setLayers([fixture.substitution / "folder"]) }
        try mount.setLayers([])
        #expect(try (mount.point / "written").readText() == "after!")
      }
    }
  }
}

extension Mount {
  /// Whether the worker has a file open.
  fileprivate func opens(_ path: ByteString) throws -> Bool {
    let folder = ByteString("/proc/\(worker)/fd")
    return try folder.names().contains { (try? (folder / $0).linkTarget()) == path }
  }

  /// What the worker's standard input leads to.
  fileprivate func standardInput() throws -> ByteString {
    try ByteString("/proc/\(worker)/fd/0").linkTarget()
  }

  /// How many descriptors the worker has open.
  fileprivate func openDescriptors() throws -> Int { try ByteString("/proc/\(worker)/fd").names().count }
}

extension Descriptor {
  /// At most as many bytes from an offset on.
  fileprivate borrowing func bytes(at offset: Int, count: Int) throws -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    let read = try bytes.withUnsafeMutableBytes { try self.read(into: $0, at: Int64(offset)) }
    return Array(bytes.prefix(read))
  }
}
