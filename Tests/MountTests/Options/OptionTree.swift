import Posix
import TestSupport

/// Layers in which each option that `OptionOnTrial` names has an effect that can be seen.
final class OptionTree {
  let folder: TemporaryFolder
  let main: ByteString
  /// The first substitution, which takes changes with `writable`.
  let top: ByteString
  /// What takes changes with `writable=DIR`.
  let upper: ByteString
  /// Where the work folder of what takes changes can be.
  let work: ByteString
  /// A layer that is not there at first.
  let absent: ByteString
  let archive: ByteString
  /// What is laid at a folder.
  let laid: ByteString
  let routes: ByteString
  /// The folder of the user's configuration, which has the profile "trial".
  let configuration: ByteString
  let point: ByteString
  /// The content of a file that is larger than one READ.
  let large = String(repeating: "0123456789abcde\n", count: 20_000)

  init() throws {
    folder = try TemporaryFolder()
    main = try folder.folder("main")
    top = try folder.folder("top")
    upper = try folder.folder("upper")
    work = try folder.folder("work")
    point = try folder.folder("mount")
    laid = try folder.folder("laid")
    absent = folder.path / "absent"
    archive = folder.path / "pack.zip"
    routes = folder.path / "routes"
    configuration = folder.path / "configuration"
    let profiles = try folder.folder("configuration/bundlefs/profiles")
    try (profiles / "trial").write(
      "# Another layer, and an option.\nsubstitution=\(folder.path)/saved\nscale=3\n")
    try (try folder.folder("saved") / "saved.txt").write("saved\n")
    try fillMain()
    try (top / "both.txt").write("top's both\n")
    try (top / "en.lproj").makeDirectory()
    try (top / "en.lproj/T.strings").write("\"key\" = \"top\";\n")
    try (laid / "laid.txt").write("laid\n")
    try archive.write(ZipBuilder([.init("packed.txt", "packed\n")]).bytes)
    try routes.write("route Known l:(known)Word\n")
  }

  /// A file that a writer removes in a round of checks.
  static func removed(in round: Int) -> ByteString { ByteString("removed\(round).txt") }

  private func fillMain() throws {
    try (main / "plain.txt").write("main's plain\n")
    try (main / "both.txt").write("main's both\n")
    for round in 0..<2 { try (main / Self.removed(in: round)).write("main's removed\n") }
    try (main / "hidden.bak").write("main's hidden\n")
    try (main / "large.bin").write(large)
    try (main / "Folder").makeDirectory()
    try (main / "Folder/Inner.txt").write("main's inner\n")
    try (main / "en.lproj").makeDirectory()
    try (main / "en.lproj/T.strings").write("\"key\" = \"main\";\n\"other\" = \"main\";\n")
  }
}
