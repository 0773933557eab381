import Glibc
import Posix
import TestSupport
import Testing

/// Archives made by other programs: every entry matches what Python's zipfile reads.
extension MountTests {
  @Suite struct RealArchiveTests {
    /// Wheels, jars and a document from Debian packages.
    private static func installed() throws -> [ByteString] {
      let folders: [(ByteString, String)] = [
        ("/usr/share/python-wheels", ".whl"), ("/usr/share/java", ".jar"),
        ("/usr/lib/python3/dist-packages/docx/templates", ".docx"),
      ]
      return folders.flatMap { folder, end in
        let names = ((try? folder.names()) ?? []).filter { $0.text.hasSuffix(end) }
        // A few of each kind; most names of a jar are links.
        return names.map { folder / $0 }.filter { (try? $0.status().kind) == .regular }.prefix(4)
      }
    }

    private func compare(_ archive: ByteString, entries minimum: Int) throws {
      let fixture = try Fixture(isFilled: false)
      try withMount(MountSetup(main: archive, point: fixture.point)) { mount in
        let script = ByteString(#filePath).parent / "compare_archive.py"
        let outcome = try Command(["python3", script, archive, mount.point]).check(timeout: 100)
        let lines = outcome.outputText.split(separator: "\n")
        #expect(lines.count == 1, "\(archive): \(lines.prefix(5))")
        #expect(lines.last.flatMap { Int($0) } ?? 0 >= minimum, "\(archive)")
      }
    }

    @Test("wheels, jars and documents from Debian packages", .timeLimit(.minutes(3)))
    func packages() throws {
      let archives = try Self.installed()
      #expect(archives.count >= 5, "only \(archives); scripts/test installs packages that contain archives")
      for archive in archives { try compare(archive, entries: 1) }
    }

    @Test(
      "an archive of more than 100 MB, and one with more than 50,000 entries", .timeLimit(.minutes(4)),
      arguments: [(3, 40 << 20), (60_000, 10)])
    func large(count: Int, size: Int) throws {
      let folder = try TemporaryFolder()
      let archive = folder / "large.zip"
      let script = """
        import os, random, sys, zipfile
        path, count, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
        source = random.Random(1)
        with zipfile.ZipFile(path, "w") as archive:
            for number in range(count):
                method = zipfile.ZIP_DEFLATED if number % 3 else zipfile.ZIP_STORED
                content = source.randbytes(size) if size < 100 else source.randbytes(1 << 20) * (size >> 20)
                info = zipfile.ZipInfo("f%d/e%d" % (number % 251, number), (2001, 2, 3, 4, 5, number % 30 * 2))
                info.external_attr = (0o100600 | number % 0o100) << 16
                archive.writestr(info, content, method, 1)
        """
      try Command([
        "python3", "-c", ByteString(script), archive, ByteString("\(count)"), ByteString("\(size)"),
      ])
      .check(timeout: 100)
      try compare(archive, entries: count)
    }
  }
}
