import Posix
import TestSupport
import Testing

/// Archives that 7z(1) has made and no layer can be.
extension MountTests {
  @Suite(.enabled(if: SevenZip.isInstalled)) struct SevenZipProgramTests {
    @Test("encrypted archives and parts of archives are refused with the reason", .timeLimit(.minutes(1)))
    func refused() throws {
      let folder = try TemporaryFolder()
      let tree = try folder.folder("tree")
      try (tree / "small").write("small")
      var random = SplitMix64(seed: 1)
      try (tree / "large").write((0..<100_000).map { _ in UInt8(truncatingIfNeeded: random.next()) })
      for (name, options) in [
        ("content.7z", ["-psecret"]), ("names.7z", ["-psecret", "-mhe=on"]), ("parts.7z", ["-v40k", "-mx0"]),
        ("parts.zip", ["-tzip", "-v40k"]),
      ] as [(ByteString, [ByteString])] {
        try Command(["7z", "a"] + options + [folder / name, "."], directory: tree).check()
      }
      let main = try folder.folder("main")
      let point = try folder.folder("mount")
      for (name, reason) in [
        ("content.7z", "encrypted 7z archives cannot be read"),
        ("names.7z", "encrypted 7z archives cannot be read"),
        ("parts.7z.001", "one part of an archive that was split"),
        ("parts.7z.002", "one part of an archive that was split"),
        ("parts.zip.001", "one part of an archive that was split"),
      ] {
        let setup = MountSetup(main: main, point: point, substitutions: [folder / ByteString(name)])
        let outcome = try setup.command(foreground: true).run(timeout: 30)
        #expect(outcome.status == 1 && outcome.errorText.contains(reason), "\(name): \(outcome.errorText)")
      }
      // Joined as the message says, they are one archive.
      let joined = try ["001", "002", "003"].flatMap { try (folder / ByteString("parts.7z." + $0)).read() }
      try (folder / "joined.7z").write(joined)
      try withMount(MountSetup(main: main, point: point, substitutions: [folder / "joined.7z"])) { mount in
        let shown = try (mount.point / "large").read()
        let packed = try (tree / "large").read()
        #expect(shown == packed)
      }
    }
  }
}

private enum SevenZip {
  static let isInstalled = (try? Command("7z", "i").check()) != nil
}
