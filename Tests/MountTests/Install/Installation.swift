import Posix
import TestSupport

/// An installation by `scripts/install` into a folder that serves as the system's root.
final class Installation {
  let folder: TemporaryFolder
  let root: ByteString
  let prefix: ByteString
  /// The script's output.
  private(set) var output = ""

  /// The project's scripts.
  static var scripts: ByteString { ByteString(#filePath).parent.parent.parent.parent / "scripts" }

  init(prefix: ByteString = "/usr") throws {
    folder = try TemporaryFolder()
    root = try folder.folder("root")
    self.prefix = prefix
    output = try command().check(timeout: 120).outputText
  }

  /// `scripts/install --prefix …`.
  func command(_ arguments: ByteString...) throws -> Command {
    Command(
      [Self.scripts / "install", "--prefix", prefix] + arguments,
      environment: [
        "DESTDIR": root.text, "BUNDLEFS_BINARY": try Binary.underTest().text, "BUNDLEFS_SKIP_PACKAGES": "1",
      ])
  }

  /// The sorted paths, relative to the root, of all installed files and links.
  func files() throws -> [String] {
    try Command("find", root.text, "!", "-type", "d", "-printf", "/%P\\n").check().outputText
      .split(separator: "\n").map { String($0) }.sorted()
  }

  /// The path of an installed file.
  func path(_ name: ByteString) -> ByteString { ByteString(root.bytes + prefix.bytes) / name }
}
