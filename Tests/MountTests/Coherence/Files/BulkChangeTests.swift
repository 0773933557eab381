import Posix
import TestSupport
import Testing

/// Thousands of changes by ordinary programs while other processes walk the mount.
extension MountTests.ExclusiveTests {
  @Suite struct BulkChangeTests {
    /// A kernel limit that makes the layer watcher lose events or watches.
    enum Restriction: CaseIterable {
      case none
      case shortQueue
      case fewWatches

      /// All of them, or the given one in a brief run.
      static func chosen(_ brief: Restriction) -> [Restriction] {
        TestLength.of(full: allCases, brief: [brief])
      }

      /// Sets the kernel limit; must be called before mounting.
      func limit() throws -> KernelLimit? {
        switch self {
        case .none: nil
        case .shortQueue: try .queuedEvents(16)
        case .fewWatches: try .watches(50)
        }
      }
    }

    @Test("git checkout, 1,000 files", .timeLimit(.minutes(3)), arguments: Restriction.chosen(.none))
    func checkout(restriction: Restriction) throws {
      let fixture = try Fixture()
      try commitTwice(fixture.substitution)
      try (fixture.main / "part-3").makeDirectory()
      try (fixture.main / "part-3/of-main").write("seen in both")
      try run(fixture, restriction) { round in
        let revision: ByteString = round % 2 == 0 ? "HEAD~1" : "side"
        try Command(["git", "-C", fixture.substitution, "checkout", "-q", revision]).check()
      }
    }

    @Test(
      "rsync -a --delete of two trees in turn", .timeLimit(.minutes(3)),
      arguments: Restriction.chosen(.shortQueue))
    func rsync(restriction: Restriction) throws {
      let fixture = try Fixture()
      let trees = ["one", "two"].map { fixture.folder / ByteString($0) }
      try fill(trees[0], folders: 0..<12, files: 0..<60, "first")
      try fill(trees[1], folders: 4..<16, files: 20..<80, "the second")
      let target = fixture.substitution / "tree"
      try target.makeDirectory()
      let hasRsync = try Command("which", "rsync").run().status == 0
      try run(fixture, restriction) { round in
        let source = trees[round % 2]
        let command =
          hasRsync
          ? Command(["rsync", "-a", "--delete", source / "", target / ""])
          : .shell(
            #"cp -a "$1/." "$2" && cd "$2" && find . -print0 | while read -rd '' f; do [[ -e $1/$f ]] || rm -rf "$f"; done"#,
            source, target)
        try command.check(timeout: 90)
      }
    }

    @Test(
      "cp -a and rm -rf of 10,000 files", .timeLimit(.minutes(5)), arguments: Restriction.chosen(.fewWatches))
    func copying(restriction: Restriction) throws {
      let fixture = try Fixture()
      let source = fixture.folder / "source"
      try fill(source, folders: 0..<100, files: 0..<100, "some")
      try (fixture.main / "copy").makeDirectory()
      try (fixture.main / "copy/of-main").write("below the copy")
      try run(fixture, restriction, rounds: TestLength.of(full: 3, brief: 2)) { round in
        let copy = fixture.substitution / "copy"
        if round % 2 == 0 {
          try Command("cp", "-a", source.text, copy.text).check(timeout: 90)
        } else {
          try Command("rm", "-rf", copy.text).check(timeout: 90)
        }
      }
    }

    /// Four readers walk the mount while the body changes a layer. After each round the mount must match the layers.
    private func run(
      _ fixture: Fixture, _ restriction: Restriction, rounds: Int = TestLength.of(full: 4, brief: 2),
      change: (Int) throws -> Void
    ) throws {
      let limit = try restriction.limit()
      defer { limit?.restore() }
      var setup = fixture.setup
      setup.lifetime = 200
      let layers = [fixture.substitution, fixture.main]
      let scope = TreeComparison.Scope(
        absentNames: ["missing", "file-0", "part-0", "folder-0", "tree", "copy", "of-main"])
      try withMount(setup) { mount in
        for round in 0..<rounds {
          let readers = try (0..<4).map { _ in try walker(mount.point) }
          defer { readers.forEach { try? $0.kill() } }
          try change(round)
          try synchronize(mount, restriction)
          for reader in readers {
            #expect(reader.status() == nil, "a reader exited: \(reader.errorText.prefix(500))")
            try reader.kill()
          }
          try expectMerged(layers, at: mount.point, "round \(round)", scope: scope)
        }
      }
    }

    private func synchronize(_ mount: Mount, _ restriction: Restriction) throws {
      try mount.barrier()
      // Unwatched directories are cached for a second, regardless of the barrier.
      if restriction != .none && Mount.hasControl { Clock.sleep(1.5) }
    }

    /// Walks, lists and reads until it is killed, ignoring errors.
    private func walker(_ point: ByteString) throws -> Child {
      try Child(
        .shell(
          #"while [ -e "$1" ]; do find "$1" -type f -print0 | xargs -0 -n 200 cat; ls -lR "$1"; done >&- 2>&-"#,
          point))
    }

    private func fill(_ root: ByteString, folders: Range<Int>, files: Range<Int>, _ text: String) throws {
      for folder in folders {
        let path = root / ByteString("folder-\(folder)")
        try path.makeDirectories()
        for file in files {
          try (path / ByteString("file-\(file)")).write("\(text) content of \(file) in \(folder)\n")
        }
      }
    }

    /// Makes a repository with two branches that differ in 1,000 files: changed, deleted, added and renamed ones.
    private func commitTwice(_ root: ByteString) throws {
      let script = #"""
        set -e
        cd "$1"
        git init -q -b first .
        git config user.name tester && git config user.email tester@example.org
        for part in {0..9}; do
          mkdir -p part-$part/inner
          for file in {0..59}; do echo "first $part $file" > part-$part/file-$file; done
          for file in {0..29}; do echo "inner $part $file" > part-$part/inner/file-$file; done
        done
        git add -A && git commit -qm first
        git checkout -q -b side
        for part in {0..3}; do for file in part-$part/file-*; do echo "side" >> $file; done; done
        rm -r part-4 part-5
        git mv part-6 renamed-6
        for part in {10..13}; do
          mkdir part-$part
          for file in {0..59}; do echo "new $part $file" > part-$part/file-$file; done
        done
        mv part-7/inner part-7.inner && rm -r part-7 && echo "a file now" > part-7
        git add -A && git commit -qm second
        """#
      try Command.shell(script, root).check(timeout: 90)
    }
  }
}
