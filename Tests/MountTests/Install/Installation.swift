import Posix
import TestSupport

/// What `scripts/install` puts into a folder that stands for the root of the system.
final class Installation {
  let folder: TemporaryFolder
  let root: ByteString
  let prefix: ByteString
  /// What it said.
  private(set) var words = ""

  /// The project's scripts.
  static var scripts: ByteString { ByteString(#filePath).parent.parent.parent.parent / "scripts" }

  init(prefix: ByteString = "/usr") throws {
    folder = try TemporaryFolder()
    root = try folder.folder("root")
    self.prefix = prefix
    words = try command().check(timeout: 120).outputText
  }

  /// `scripts/install --prefix …`.
  func command(_ arguments: ByteString...) throws -> Command {
    Command(
      [Self.scripts / "install", "--prefix", prefix] + arguments,
      environment: [
        "DESTDIR": root.text, "BUNDLEFS_BINARY": try Binary.underTest().text, "BUNDLEFS_SKIP_PACKAGES": "1",
      ])
  }

  /// All files and links below the root, as they are called in it, sorted.
  func files() throws -> [String] {
    try Command("find", root.text, "!", "-type", "d", "-printf", "/%P\\n").check().outputText
      .split(separator: "\n").map { String($0) }.sorted()
  }

  /// The path of something that is installed.
  func path(_ name: ByteString) -> ByteString { ByteString(root.bytes + prefix.bytes) / name }
}
