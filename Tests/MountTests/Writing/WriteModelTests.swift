import Posix
import TestSupport
import Testing

/// Random operations through a writable mount have the results and the effects that they have on a plain file system.
extension MountTests {
  @Suite struct WriteModelTests {
    @Test("operations", .timeLimit(.minutes(60)), arguments: WriteModelRun.seeds(percent: 30))
    func operations(seed: UInt64) throws {
      try WriteModelRun(seed: seed).run()
    }

    @Test("three layers", .timeLimit(.minutes(60)), arguments: WriteModelRun.seeds(percent: 20))
    func threeLayers(seed: UInt64) throws {
      try WriteModelRun(seed: seed, substitutions: 2).run()
    }

    @Test("many layers", .timeLimit(.minutes(60)), arguments: WriteModelRun.seeds(percent: 30))
    func manyLayers(seed: UInt64) throws {
      try WriteModelRun(
        seed: seed, substitutions: 3 + Int(seed % 9), hasEdits: seed % 2 == 0, hasDeaths: seed % 5 == 0,
        foldsNames: seed % 3 == 0
      ).run()
    }

    @Test(
      "hard links in the layers below", .timeLimit(.minutes(60)), arguments: WriteModelRun.seeds(percent: 20))
    func hardLinks(seed: UInt64) throws {
      try WriteModelRun(
        seed: seed, substitutions: seed % 2 == 0 ? 1 : 2, hasDeaths: seed % 3 == 0, hasHardLinks: true
      ).run()
    }

    @Test("without caches", .timeLimit(.minutes(60)), arguments: WriteModelRun.seeds(percent: 10))
    func withoutCaches(seed: UInt64) throws {
      try WriteModelRun(seed: seed, options: ["cache=none"]).run()
    }

    @Test("passthrough", .timeLimit(.minutes(60)), arguments: WriteModelRun.seeds(percent: 20))
    func passthrough(seed: UInt64) throws {
      try WriteModelRun(
        seed: seed, substitutions: seed % 2 == 0 ? 1 : 2, options: ["passthrough"], hasEdits: seed % 4 < 2,
        hasDeaths: seed % 3 == 0
      ).run()
    }

    @Test(
      "while layers change from below", .timeLimit(.minutes(60)), arguments: WriteModelRun.seeds(percent: 20))
    func edits(seed: UInt64) throws {
      try WriteModelRun(seed: seed, substitutions: seed % 2 == 0 ? 1 : 2, hasEdits: true).run()
    }

    @Test("names without case", .timeLimit(.minutes(60)), arguments: WriteModelRun.seeds(percent: 30))
    func spellings(seed: UInt64) throws {
      try WriteModelRun(
        seed: seed, substitutions: seed % 2 == 0 ? 1 : 2,
        options: seed % 3 == 0 ? ["whiteouts=markers"] : [], foldsNames: true
      ).run()
    }

    @Test(
      "names without case while layers change from below", .timeLimit(.minutes(60)),
      arguments: WriteModelRun.seeds(percent: 20))
    func spellingEdits(seed: UInt64) throws {
      try WriteModelRun(
        seed: seed, substitutions: seed % 2 == 0 ? 1 : 2, hasEdits: true, foldsNames: true
      ).run()
    }

    @Test(
      "names without case while workers die", .timeLimit(.minutes(60)),
      arguments: WriteModelRun.seeds(percent: 20))
    func spellingDeaths(seed: UInt64) throws {
      try WriteModelRun(seed: seed, hasDeaths: true, foldsNames: true).run()
    }

    @Test("while workers die", .timeLimit(.minutes(60)), arguments: WriteModelRun.seeds(percent: 20))
    func deaths(seed: UInt64) throws {
      try WriteModelRun(seed: seed, hasDeaths: true).run()
    }
  }
}
