import Posix
import TestSupport
import Testing

/// Layers with old files, mounted with `mtime=visible`.
final class VisibleTimeFixture {
  let folder: TemporaryFolder
  let main: ByteString
  let top: ByteString
  let further: ByteString
  /// The user's folder of state.
  let state: ByteString
  var setup: MountSetup

  init(_ options: ByteString...) throws {
    folder = try TemporaryFolder()
    (main, top) = (try folder.folder("main"), try folder.folder("top"))
    (further, state) = (try folder.folder("further"), folder / "state")
    setup = MountSetup(main: main, point: try folder.folder("mount"), substitutions: [top])
    setup.options = ["mtime=visible"] + options
    setup.environment["XDG_STATE_HOME"] = state.text
    try write("main", to: main / "file", year: 2001)
  }

  /// 1 January of a year, nearly.
  static func time(_ year: Int64) -> TimeSpec {
    TimeSpec(seconds: (year - 1970) * 31_556_952, nanoseconds: 123_456_789)
  }

  /// Replaces a file by one that was modified long ago.
  func write(_ text: String, to file: ByteString, year: Int64) throws {
    try file.parent.makeDirectories()
    let new = folder / "new"
    try new.write(text)
    try new.setModified(Self.time(year))
    try new.rename(to: file)
  }

  /// Expects a text through a mount, and the time of the moment between two others.
  func expect(
    _ text: String, at path: ByteString, after start: TimeSpec, location: SourceLocation = #_sourceLocation
  ) throws {
    var seen = ""
    let isThere = eventually(within: 20) {
      seen = (try? path.readText()) ?? "none"
      return seen == text
    }
    #expect(isThere, "\(seen)", sourceLocation: location)
    let status = try path.status()
    #expect(status.modified > start, "\(path): \(status.modified)", sourceLocation: location)
    #expect(status.modified <= .now, sourceLocation: location)
    #expect(status.changed >= status.modified, sourceLocation: location)
    #expect(try path.status() == status, sourceLocation: location)
  }

  func expectOwnTime(
    _ path: ByteString, year: Int64, location: SourceLocation = #_sourceLocation
  ) throws {
    #expect(try path.status().modified == Self.time(year), "\(path)", sourceLocation: location)
  }
}
