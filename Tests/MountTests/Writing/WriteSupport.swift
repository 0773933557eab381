import Glibc
import Posix
import TestSupport
import Testing

/// Mounts the filled fixture with `writable`, so that its substitution takes the changes.
@discardableResult
func withWritable<Result>(
  _ options: ByteString..., fixture: Fixture? = nil, _ body: (Mount, Fixture) throws -> Result
) throws -> Result {
  let fixture = try fixture ?? Fixture()
  var setup = fixture.setup
  setup.options = ["writable"] + options
  return try withMount(setup) { try body($0, fixture) }
}

/// Expects MAIN as the fixture has filled it, whatever was written through the mount.
func expectUntouchedMain(_ fixture: Fixture, location: SourceLocation = #_sourceLocation) throws {
  let texts = [
    "plain.txt": "main's plain\n", "replaced.txt": "main's replaced\n", "folder/inner.txt": "main's inner\n",
    "folder/both.txt": "main's both\n", "only/deep/file.txt": "deep\n",
  ]
  for (path, text) in texts {
    #expect(try (fixture.main / ByteString(path)).readText() == text, "\(path)", sourceLocation: location)
  }
  #expect(
    try fixture.main.names() == ["folder", "link", "only", "plain.txt", "replaced.txt"],
    sourceLocation: location)
}

/// Mounts the kernel's overlayfs with the substitution above MAIN.
func withOverlay(_ fixture: Fixture, _ body: (ByteString) throws -> Void) throws {
  let point = try fixture.folder.folder("overlay")
  let layers = "lowerdir=\(fixture.substitution):\(fixture.main)"
  try Command("mount", "-t", "overlay", "-o", "ro," + layers, "overlay", point.text).check()
  defer { MountTable.abandon(point, isFuse: false) }
  try body(point)
}

extension ByteString {
  /// Whether it is an overlayfs whiteout.
  var isWhiteout: Bool {
    guard let status = try? status() else { return false }
    return status.kind == .characterDevice && status.rdev == 0
  }

  /// Opens a file for the body, and throws if a call in it fails.
  func withFile<Result>(_ flags: CInt, _ mode: UInt32 = 0o644, _ body: (CInt) throws -> Result) throws
    -> Result
  {
    let file = try call("open") { open($0, flags | O_CLOEXEC, mode) }
    defer { close(file) }
    return try body(file)
  }

  /// Writes to an open file in one call.
  /// - Parameter offset: nil for the file's own.
  static func put(_ text: String, in file: CInt, at offset: Int? = nil) throws {
    let bytes = Array(text.utf8)
    let count =
      offset.map { pwrite(file, bytes, bytes.count, off_t($0)) } ?? Glibc.write(file, bytes, bytes.count)
    if count != bytes.count { throw DiskError("write", "", .current) }
  }

  /// Reads an open file from its beginning.
  static func text(of file: CInt) throws -> String {
    var bytes = [UInt8](repeating: 0, count: 1 << 20)
    let count = try readPart(&bytes, of: file, at: 0)
    return String(decoding: bytes[..<count], as: UTF8.self)
  }
}
