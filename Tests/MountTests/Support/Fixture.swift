import Glibc
import Posix
import TestSupport
import Testing

/// Two small layers and a mount point in a temporary folder.
final class Fixture {
  let folder: TemporaryFolder
  let main: ByteString
  let substitution: ByteString
  let point: ByteString

  /// - Parameter isFilled: whether the layers have a few files.
  init(isFilled: Bool = true) throws {
    folder = try TemporaryFolder()
    main = try folder.folder("main")
    substitution = try folder.folder("substitution")
    point = try folder.folder("mount")
    if isFilled { try fill() }
  }

  var setup: MountSetup { MountSetup(main: main, point: point, substitutions: [substitution]) }

  /// A mount with options.
  func setup(_ options: ByteString...) -> MountSetup {
    var setup = setup
    setup.options = options
    return setup
  }

  private func fill() throws {
    try (main / "plain.txt").write("main's plain\n")
    try (main / "replaced.txt").write("main's replaced\n")
    try (substitution / "replaced.txt").write("substitution's replaced, longer\n")
    try (main / "folder").makeDirectory()
    try (main / "folder" / "inner.txt").write("main's inner\n")
    try (main / "folder" / "both.txt").write("main's both\n")
    try (substitution / "folder").makeDirectory()
    try (substitution / "folder" / "both.txt").write("substitution's both\n")
    try (substitution / "folder" / "added.txt").write("substitution's added\n")
    try (main / "only").makeDirectory()
    try (main / "only" / "deep").makeDirectory()
    try (main / "only" / "deep" / "file.txt").write("deep\n")
    try (main / "link").makeLink(to: "plain.txt")
  }

  /// Adds folders to both layers, each with `files` one-line files: m0, m1, … in MAIN; s0, s1, … in the
  /// substitution.
  func fill(folders: [ByteString], files: Int) throws {
    for folder in folders {
      for (layer, prefix) in [(main, "m"), (substitution, "s")] {
        try (layer / folder).makeDirectories()
        for file in 0..<files {
          try (layer / folder / ByteString("\(prefix)\(file)")).write("content \(file) of \(folder)\n")
        }
      }
    }
  }

  /// The merged files of the filled fixture, by path.
  static let content: [ByteString: String] = [
    "plain.txt": "main's plain\n", "replaced.txt": "substitution's replaced, longer\n",
    "folder/inner.txt": "main's inner\n", "folder/both.txt": "substitution's both\n",
    "folder/added.txt": "substitution's added\n", "only/deep/file.txt": "deep\n",
  ]

  /// The names in the merged root of the filled fixture.
  static let rootNames: [ByteString] = ["folder", "link", "only", "plain.txt", "replaced.txt"]
}

/// Expects the filled fixture at a path.
func expectFixture(at point: ByteString, location: SourceLocation = #_sourceLocation) throws {
  let names = try point.names()
  #expect(names == Fixture.rootNames, sourceLocation: location)
  for (path, text) in Fixture.content {
    #expect(try (point / path).readText() == text, "\(path)", sourceLocation: location)
  }
}

/// Expects the body to fail with this error.
func expectErrno(
  _ expected: Errno, _ subject: Comment? = nil, location: SourceLocation = #_sourceLocation,
  _ body: () throws -> Void
) throws {
  let seen = try errorNumber(of: body)
  #expect(seen == expected, subject, sourceLocation: location)
}
