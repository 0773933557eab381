import Posix
import TestSupport

/// A bundle with `Contents/Resources` and a substitution for it, in a temporary folder.
final class BundleFixture {
  let fixture: Fixture
  /// The resource folders of both layers.
  let main: ByteString
  let substitution: ByteString

  init() throws {
    fixture = try Fixture(isFilled: false)
    main = fixture.main / "Contents" / "Resources"
    substitution = fixture.substitution / "Contents" / "Resources"
    try (fixture.main / "Contents" / "Info.plist").put(Self.information)
    try put(
      [
        "logo.png": "main's logo", "page.html": "<p>é</p>", "my page.html": "<p>space</p>",
        "100%.txt": "percent", "images/icon.svg": "<svg/>", "images/icon@2x.png": "main's icon",
        "fr.lproj/Main.strings": "main's French", "en.lproj/Main.strings": "main's English",
        "fr.lproj/help/index.html": "<p>aide</p>", "data": "\u{0}\u{1}",
      ], in: main)
    try substitution.makeDirectories()
    try (main / "link.svg").makeLink(to: "images/icon.svg")
    try (main / "outside").makeLink(to: "/etc/passwd")
    try (main / "climbing").makeLink(to: "../../../../../../etc")
  }

  private static let information = """
    <?xml version="1.0" encoding="UTF-8"?>
    <plist version="1.0"><dict>
    <key>CFBundleIdentifier</key><string>org.example.Zoo</string>
    <key>CFBundleDevelopmentRegion</key><string>en</string>
    </dict></plist>
    """

  /// Writes files and makes their parent folders.
  func put(_ files: [String: String], in folder: ByteString) throws {
    for (path, content) in files { try (folder / ByteString(path)).put(content) }
  }

  /// A mount of the bundle.
  /// - Parameter options: added to `languages=fr:en`.
  func setup(_ options: ByteString...) -> MountSetup {
    var setup = fixture.setup
    setup.options = ["languages=fr:en"] + options
    return setup
  }
}

extension ByteString {
  /// Writes a file and makes its parent folders.
  func put(_ content: String) throws {
    try parent.makeDirectories()
    try write(content)
  }
}

extension Mount {
  /// The folder whose entries are resource URLs.
  var resources: ByteString { point / "rsrc:" }
}
