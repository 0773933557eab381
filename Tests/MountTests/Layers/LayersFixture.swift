import FoundationEssentials
import Posix
import TestSupport
import Testing

/// MAIN, `mods/a`, `mods/b` and the archive `mods/c.zip`. Each has a file `who` with its name, and a file of its own.
final class LayersFixture {
  let folder: TemporaryFolder
  let main: ByteString
  let point: ByteString

  init() throws {
    folder = try TemporaryFolder()
    main = try folder.folder("main")
    point = try folder.folder("mount")
    try Self.fill(main)
    for name in ["a", "b"] as [ByteString] { try Self.fill(try folder.folder("mods/" + name)) }
    try (folder / "mods/c.zip").write(
      ZipBuilder([.init("who", "c.zip", .deflated), .init("c.zip.txt", "")]).bytes)
  }

  static func fill(_ layer: ByteString) throws {
    try (layer / "who").write(layer.lastComponent.text)
    try (layer / (layer.lastComponent + ".txt")).write("")
  }

  func layer(_ name: ByteString) -> ByteString { folder / ("mods/" + name) }

  /// A mount with these mods.
  func setup(_ names: ByteString..., options: [ByteString] = []) -> MountSetup {
    var setup = MountSetup(main: main, point: point, substitutions: names.map(layer))
    setup.options = options
    return setup
  }

  /// Runs `bundlefs layers MOUNTPOINT …` in the folder of the fixture.
  func run(_ words: ByteString...) throws -> Outcome { try run(words) }

  private func run(_ words: [ByteString]) throws -> Outcome {
    try Command([try Binary.underTest(), "layers", point] + words, directory: folder.path).run(timeout: 30)
  }

  /// Runs a command that must succeed, silently.
  func change(_ words: ByteString..., location: SourceLocation = #_sourceLocation) throws {
    let outcome = try run(words)
    #expect(
      outcome.status == 0 && outcome.output.isEmpty && outcome.errors.isEmpty,
      "\(words): exit \(outcome.status): \(outcome.errorText)", sourceLocation: location)
  }

  func remount(_ options: ByteString) throws -> Outcome {
    try Command([try Binary.underTest(), main, point, "-o", "remount," + options], directory: folder.path)
      .run(timeout: 30)
  }

  struct Listed: Decodable, Equatable {
    var role: String
    var path: String
    var kind: String
    var problems: [String]
    var names: Int?
    var hides: Int?
  }

  func listed(counts: Bool = false) throws -> [Listed] {
    let outcome = try Command(
      [try Binary.underTest(), "layers", point, "--json"] + (counts ? ["--count"] : [])
    ).check()
    return try JSONDecoder().decode([Listed].self, from: Data(outcome.output))
  }

  /// Expects these layers over MAIN, in the list and in the view.
  func expect(_ names: String..., location: SourceLocation = #_sourceLocation) throws {
    let layers = try listed()
    #expect(
      layers.map(\.path) == names.map { layer(ByteString($0)).text } + [main.text], sourceLocation: location)
    #expect(layers.last?.role == "MAIN", sourceLocation: location)
    #expect(try (point / "who").readText() == names.first ?? "main", sourceLocation: location)
    let shown = try point.names().map(\.text)
    #expect(shown == (["main.txt", "who"] + names.map { $0 + ".txt" }).sorted(), sourceLocation: location)
  }

  /// Expects one line that has these words, and no change.
  func expectRefusal(
    _ words: ByteString..., naming: String..., status: Int = 1, location: SourceLocation = #_sourceLocation
  ) throws {
    let before = try listed()
    let outcome = try run(words)
    let message = Comment("\(words): exit \(outcome.status): \(outcome.errorText)")
    #expect(outcome.status == status, message, sourceLocation: location)
    #expect(outcome.errorText.split(separator: "\n").count == 1, message, sourceLocation: location)
    for name in naming { #expect(outcome.errorText.contains(name), message, sourceLocation: location) }
    #expect(try listed() == before, sourceLocation: location)
  }
}
