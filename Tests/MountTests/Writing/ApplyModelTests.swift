import Glibc
import Posix
import TestSupport
import Testing

/// `bundlefs apply` with random layers: the mount shows the same before and after.
extension MountTests {
  @Suite struct ApplyModelTests {
    private static let seeds = Seeds.chosen(TestLength.of(full: 200, brief: 40))

    private struct Run {
      let stack: [PlannedLayer]
      let folder: TemporaryFolder
      let roots: [ByteString]
      let setup: MountSetup

      init(seed: UInt64, count: Int, options: [ByteString] = []) throws {
        stack = StackGenerator.stack(seed: seed, count: count, isOverlayOnly: seed % 2 == 0)
        let folder = try TemporaryFolder()
        roots = try stack.enumerated().map { index, layer in
          let root = try folder.folder(ByteString("layer\(index)"))
          try LayerMaker.make(layer, at: root)
          return root
        }
        self.folder = folder
        var setup = MountSetup(
          main: roots[count - 1], point: try folder.folder("mount"), substitutions: roots.dropLast())
        setup.options = options
        self.setup = setup
      }

      /// - Parameters:
      ///   - hasRoot: whether the root is compared, whose attributes stay those of the top layer.
      ///   - wasKilled: whether a folder's time may be that of a change that was not finished.
      func expectSame(
        _ former: [ByteString: EntrySnapshot], at point: ByteString, hasRoot: Bool = true,
        wasKilled: Bool = false, _ comment: Comment
      ) throws {
        var (former, seen) = (former, try Apply.snapshot(point))
        if !hasRoot { (former[""], seen[""]) = (nil, nil) }
        var differences = Apply.differences(former, seen)
        if wasKilled {
          let folders = seen.keys.filter { (try? (point + $0).status().kind) == .directory }
          differences.removeAll { line in folders.contains { line.hasPrefix("\($0): mtime:") } }
        }
        #expect(differences.isEmpty, "\(comment): \(differences.prefix(8).joined(separator: "\n"))")
      }
    }

    @Test(
      "MAIN becomes what the mount showed, and the top layer empty", .timeLimit(.minutes(2)),
      arguments: seeds)
    func whole(seed: UInt64) throws {
      let run = try Run(seed: seed, count: 2, options: seed % 3 == 0 ? ["writable"] : [])
      var former: [ByteString: EntrySnapshot] = [:]
      try withMount(run.setup) { mount in
        former = try Apply.snapshot(mount.point)
        let outcome = try Apply.run(mount)
        #expect(outcome.status == 0, "\(outcome)")
        try run.expectSame(former, at: mount.point, "after it")
        #expect(try Apply.names(run.roots[0]) == [])
        let again = try Apply.run(mount)
        #expect(again.status == 0 && again.outputText.contains("nothing to apply"), "\(again)")
      }
      try withMount(MountSetup(main: run.roots[1], point: run.setup.point)) { mount in
        try run.expectSame(former, at: mount.point, hasRoot: false, "MAIN alone")
      }
    }

    @Test("some paths of it", .timeLimit(.minutes(2)), arguments: seeds)
    func paths(seed: UInt64) throws {
      let run = try Run(seed: seed, count: 2)
      try withMount(run.setup) { mount in
        var random = SplitMix64(seed: seed)
        let former = try Apply.snapshot(mount.point)
        let candidates = try Apply.snapshot(run.roots[0]).keys.filter { $0.count > 0 }.sorted()
        for _ in 0..<4 where !candidates.isEmpty {
          let paths = (0..<random.number(1...3)).map { _ in
            ByteString(Array(random.pick(candidates).bytes.dropFirst()))
          }
          _ = try Command([try Binary.underTest(), "apply", mount.point, "--yes", "--"] + paths).run()
          try run.expectSame(former, at: mount.point, "\(paths)")
        }
        #expect(try Apply.run(mount).status == 0)
        try run.expectSame(former, at: mount.point, "the rest")
        #expect(try Apply.names(run.roots[0]) == [])
      }
    }

    @Test(
      "layers between and below neither hide the result nor show through", .timeLimit(.minutes(2)),
      arguments: seeds)
    func severalLayers(seed: UInt64) throws {
      let run = try Run(seed: seed, count: 4)
      try withMount(run.setup) { mount in
        let former = try Apply.snapshot(mount.point)
        var hasAll = true
        for layer in [run.roots[1 + Int(seed % 2)], run.roots[3], run.roots[1]] {
          let outcome = try Apply.run(mount, "--to", layer)
          let errors = outcome.errorText.split(separator: "\n")
          // A name that no marker can have.
          let isTooLong = errors.contains { $0.hasSuffix("File name too long") }
          if isTooLong { hasAll = false }
          let isExplained = outcome.status == 0 || outcome.outputText.contains("keeps") || isTooLong
          #expect(isExplained, "\(outcome.status): \(outcome.outputText)\(outcome.errorText)")
          try run.expectSame(former, at: mount.point, "to \(layer): \(outcome.outputText)")
        }
        // Nothing lies between.
        if hasAll { #expect(try Apply.names(run.roots[0]) == []) }
      }
    }

    @Test(
      "killed at any moment, and repeated", .timeLimit(.minutes(5)),
      arguments: Seeds.chosen(TestLength.of(full: 30, brief: 8)))
    func killed(seed: UInt64) throws {
      let run = try Run(seed: seed, count: 2)
      for index in 0..<40 {
        let folder = run.roots[0] / ByteString("extra\(index % 5)")
        try folder.makeDirectories()
        try (folder / ByteString("file\(index)")).write("content \(index)\n")
      }
      try (run.roots[0] / "extra0/linked").makeHardLink(of: run.roots[0] / "extra1/file1")
      var former: [ByteString: EntrySnapshot] = [:]
      try withMount(run.setup) { mount in
        former = try Apply.snapshot(mount.point)
        var random = SplitMix64(seed: seed)
        for _ in 0..<12 {
          let child = try Child(Command([try Binary.underTest(), "apply", mount.point, "--yes"]))
          usleep(UInt32(random.number(5_000...120_000)))
          child.signal(9)
          _ = try child.wait(timeout: 30)
          try run.expectSame(former, at: mount.point, wasKilled: true, "after a kill")
        }
        #expect(try Apply.run(mount).status == 0)
        try run.expectSame(former, at: mount.point, wasKilled: true, "after the last")
        #expect(try Apply.names(run.roots[0]) == [])
        #expect(!(run.roots[1] / ".wh..wh.bundlefs-work").exists)
      }
      // Each is a name of one file still.
      let (first, second) = (run.roots[1] / "extra0/linked", run.roots[1] / "extra1/file1")
      #expect(try first.status().inode == second.status().inode)
      try withMount(MountSetup(main: run.roots[1], point: run.setup.point)) { mount in
        try run.expectSame(former, at: mount.point, hasRoot: false, wasKilled: true, "MAIN alone")
      }
    }
  }
}
