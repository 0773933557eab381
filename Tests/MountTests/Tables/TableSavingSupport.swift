import Glibc
import Posix
import TestSupport
import Testing

/// A writable mount that merges tables, and one table in it.
struct TableSaving {
  static let name: ByteString = "fr.lproj/Main.strings"
  static let main = "/* title */\n\"a\" = \"1\";\n\"b\" = \"2\";\n/* last */\n\"c\" = \"3\";\n"
  static let mark = "/* bundlefs: whole table. Strings of the layers below do not show. */\n"

  let mount: Mount
  let fixture: Fixture

  var table: ByteString { mount.point / Self.name }
  var upper: ByteString { fixture.substitution / Self.name }
  var below: ByteString { fixture.main / Self.name }

  /// - Parameter upper: the upper layer's table; nil for none.
  static func run(
    _ options: ByteString..., upper: String? = nil, main: String = main, fixture: Fixture? = nil,
    _ body: (Self) throws -> Void
  ) throws {
    let fixture = try fixture ?? Fixture(isFilled: false)
    for layer in [fixture.main, fixture.substitution] { try (layer / "fr.lproj").makeDirectories() }
    try (fixture.main / name).write(main)
    if let upper { try (fixture.substitution / name).write(upper) }
    var setup = fixture.setup
    setup.options = ["writable", "strings=merge"] + options
    try withMount(setup) { try body(Self(mount: $0, fixture: fixture)) }
  }

  /// The tables that are still to be reduced.
  static func pending(in layer: ByteString) -> [ByteString] {
    let names = (try? (layer / ".wh..wh.bundlefs-work").names()) ?? []
    return names.filter { $0.text.hasPrefix("table-") }
  }

  /// Waits until all that was saved is reduced, and shown so.
  func settle(location: SourceLocation = #_sourceLocation) throws {
    let isSettled = eventually(within: 20) { Self.pending(in: fixture.substitution).isEmpty }
    #expect(isSettled, sourceLocation: location)
    try mount.barrier()
  }

  /// Expects the upper layer to have a text, and the mount to show another.
  func expect(upper: String, shown: String, location: SourceLocation = #_sourceLocation) throws {
    try settle(location: location)
    #expect(try self.upper.readText() == upper, sourceLocation: location)
    #expect(try table.readText() == shown, sourceLocation: location)
    #expect(try table.status().size == Int64(shown.utf8.count), sourceLocation: location)
  }
}
