import Glibc
import Posix
import TestSupport
import Testing

@testable import Layers

/// Names in tar archives that no extracting program takes as they are.
@Suite struct ContainerNamesTests {
  /// Archives a folder `d`, with GNU tar's options and the paths that a script prints.
  private func fixture(_ script: String) throws -> ArchiveFixture {
    let folder = try TemporaryFolder()
    try Command.shell("set -e; cd \"$1\"; mkdir d; " + script, folder.path).check()
    return try ArchiveFixture(archive: (folder / "archive").read())
  }

  @Test("leading slashes are stripped, also of hard links", arguments: ["", "z"])
  func absolute(compression: String) throws {
    let fixture = try fixture(
      "echo 1 > d/a; ln d/a d/b; mkdir d/f; echo 2 > d/f/c; tar -cP\(compression)f archive --transform='s,^,//,rSh' d"
    )
    #expect(try fixture.paths() == ["d/", "d/a", "d/b", "d/f/", "d/f/c"])
    #expect(try fixture.text("d/b") == "1\n")
    #expect(try fixture.attributes("d/a").links == 2)
    #expect(fixture.layer.emptinessReason == nil)
  }

  @Test("a folder is found in an archive whose names are absolute, and / is the root")
  func folder() throws {
    let folder = try TemporaryFolder()
    let script = """
      import tarfile, sys
      with tarfile.open(sys.argv[1], "w") as archive:
          for name in ["/", "/d", "/d/f"]:
              info = tarfile.TarInfo(name)
              info.name, info.mode = name, 0o750
              info.type = tarfile.REGTYPE if name == "/d/f" else tarfile.DIRTYPE
              archive.addfile(info)
      """
    try Command(["python3", "-c", ByteString(script), folder / "archive"]).check()
    let bytes = try (folder / "archive").read()
    #expect(try ArchiveFixture(archive: bytes, inside: ["d"]).paths() == ["f"])
    let whole = try ArchiveFixture(archive: bytes)
    #expect(try whole.paths() == ["d/", "d/f"] && whole.skipped.isEmpty)
    #expect(try whole.layer.root.attributes().mode & 0o777 == 0o750)
  }

  @Test("an archive of which nothing is visible says why")
  func nothing() throws {
    let fixture = try fixture("echo 1 > d/a; tar -cPf archive --transform='s,^,../,' d/a")
    #expect(try fixture.paths() == [])
    #expect(
      fixture.layer.emptinessReason == "none of its entries is visible; skipped: 1 ('..' in the path)")
  }

  @Test("a link count is that of the names that are shown", arguments: ["", "z"])
  func linkCounts(compression: String) throws {
    // A link to itself; one whose target is replaced; one that is replaced itself; two that stay.
    let fixture = try fixture(
      """
      for name in a b c e; do echo $name > d/$name; done; ln d/b d/b2; ln d/c d/c2; ln d/e d/e2
      tar -cf archive d/a d/b d/b2 d/c d/c2 d/e d/e2
      tar -rf archive --transform='s,x,a,' --hard-dereference d/a
      rm d/b d/c2; echo new > d/b; echo new > d/c2; tar -rf archive d/b d/c2
      python3 - <<'END'
      import tarfile
      with tarfile.open("archive", "a") as archive:
          info = tarfile.TarInfo("d/a"); info.type = tarfile.LNKTYPE; info.linkname = "d/a"; info.mode = 0o644
          archive.addfile(info)
      END
      test -z "\(compression)" || { gzip archive; mv archive.gz archive; }
      """)
    let names = ["a", "b", "b2", "c", "c2", "e", "e2"]
    let counts = try names.map { try fixture.attributes("d/" + $0).links }
    #expect(counts == [1, 1, 1, 1, 1, 2, 2])
    #expect(
      try names.map { try fixture.text("d/" + $0) }
        == ["a", "new", "b", "c", "new", "e", "e"].map { $0 + "\n" })
    let numbers = try names.map { try fixture.attributes("d/" + $0).identity.inode }
    #expect(Set(numbers).count == 6 && numbers[5] == numbers[6])
  }

  @Test("a changed link count is a difference of attributes")
  func changedCount() throws {
    let fixture = try fixture("echo 1 > d/a; ln d/a d/b; tar -cf archive --mtime=@1000 d/a d/b")
    let folder = try TemporaryFolder()
    try Command.shell(
      "cd \"$1\"; mkdir d; echo 1 > d/a; tar -cf archive --mtime=@1000 d/a", folder.path
    ).check()
    try fixture.path.replace((folder / "archive").read())
    let difference = try #require(fixture.layer.reload())
    #expect(Set(difference.items.map(\.kind)) == [.attributes, .deleted])
    #expect(try fixture.attributes("d/a").links == 1)
  }
}
