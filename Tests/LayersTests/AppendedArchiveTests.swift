import Posix
import TestSupport
import Testing

@testable import Layers

/// Tar archives that follow another one in a file.
@Suite struct AppendedArchiveTests {
  /// What a shell writes into `archive`, beside `a.tar` and `b.tar`. The first fills more than one chunk of any reader.
  private func fixture(_ script: String) throws -> ArchiveFixture {
    let folder = try TemporaryFolder()
    let preparation = """
      cd "$1"; head -c 3000001 /dev/urandom > a; echo b > b
      for n in a b; do tar -cf $n.tar $n; done;
      """
    try Command.shell(preparation + script, folder.path).check()
    return try ArchiveFixture(archive: (folder / "archive").read())
  }

  @Test(
    "an appended tar archive is noticed, and not shown",
    arguments: [
      "cat a.tar b.tar > archive", "(cat a.tar; head -c 102400 /dev/zero; cat b.tar) > archive",
      "cat a.tar b.tar | gzip > archive", "(gzip -c a.tar; gzip -c b.tar) > archive",
      "(xz -0 -c a.tar; xz -0 -c b.tar) > archive", "cat a.tar b.tar | bzip2 > archive",
    ])
  func noticed(script: String) throws {
    let fixture = try fixture(script)
    #expect(try fixture.paths() == ["a"])
    #expect(fixture.layer.statistics.hasAppended)
  }

  @Test(
    "anything else behind an archive is none",
    arguments: [
      "cp a.tar archive", "gzip -c a.tar > archive", "(cat a.tar; head -c 40000 /dev/zero) > archive",
      "(cat a.tar; seq 10000) > archive", "(cat a.tar; seq 10000; cat b.tar) | xz -0 > archive",
      "(cat a.tar; head -c 2097152 /dev/zero; cat b.tar) > archive",
    ])
  func others(script: String) throws {
    let fixture = try fixture(script)
    #expect(try fixture.paths() == ["a"])
    #expect(!fixture.layer.statistics.hasAppended)
  }
}
