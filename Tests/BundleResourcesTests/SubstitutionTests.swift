import BundleResources
import Foundation
import FoundationNetworking
import Posix
import TestSupport
import Testing

/// Substitutions that are replaced, and those that may be missing.
@Suite(.serialized) struct SubstitutionTests {
  private func layers(_ fixture: ResourceFixture, _ count: Int) throws -> [URL] {
    try (0..<count).map { index in
      let layer = try fixture.folder.folder(ByteString("layer\(index)"))
      try (layer / "en.lproj").makeDirectories()
      try (layer / "en.lproj/Localizable.strings").write("a = \(index); b = \(index);")
      try (layer / "file.txt").write("\(index)")
      return layer.url
    }
  }

  @Test("substitutions are replaced")
  func replaced() throws {
    let fixture = try ResourceFixture()
    try fixture.make("en.lproj/Localizable.strings", "a = main;")
    let layers = try layers(fixture, 2)
    let bundle = try LayeredBundle(main: fixture.main.url)
    #expect(bundle.substitutions == [] && bundle.localizedString(forKey: "a") == "main")
    try bundle.setSubstitutions(layers)
    #expect(bundle.substitutions == layers && bundle.localizedString(forKey: "a") == "0")
    #expect(try bundle.data(forResource: "file.txt") == Data("0".utf8))
    try bundle.setSubstitutions([layers[1]])
    #expect(bundle.localizedString(forKey: "a") == "1")
    #expect(bundle.url(forResource: "file.txt")?.path.hasSuffix("layer1/file.txt") == true)
    // The former ones stay if one cannot be opened.
    let missing = fixture.folder.path.url.appending(path: "none")
    #expect(code { try bundle.setSubstitutions([missing]) } == .fileDoesNotExist)
    #expect(bundle.substitutions == [layers[1]] && bundle.localizedString(forKey: "a") == "1")
    try bundle.setSubstitutions([])
    #expect(bundle.localizedString(forKey: "a") == "main" && bundle.url(forResource: "file.txt") == nil)
  }

  @Test("a look-up meets the former substitutions or the new ones, never both")
  func atomic() async throws {
    let fixture = try ResourceFixture()
    let layers = try layers(fixture, 2)
    let bundle = try LayeredBundle(main: fixture.main.url, substitution: [layers[0]])
    await withTaskGroup(of: Bool.self) { group in
      group.addTask {
        for round in 0..<200 {
          // With one layer less, an index into the layers would be out of bounds.
          let next = round % 2 == 0 ? [layers[1]] : [layers[0], layers[1]]
          if (try? bundle.setSubstitutions(next)) == nil { return false }
        }
        return true
      }
      for _ in 0..<2 {
        group.addTask {
          for _ in 0..<500 {
            let string = bundle.localizedString(forKey: "a")
            guard ["0", "1"].contains(string), bundle.url(forResource: "file.txt") != nil,
              bundle.urls(forResourcesWithExtension: "txt").count == 1
            else { return false }
          }
          return true
        }
      }
      for await isRight in group { #expect(isRight) }
    }
  }

  @Test("a replacement is a change of anything, and the new layers are watched", .timeLimit(.minutes(2)))
  func event() async throws {
    let fixture = try ResourceFixture()
    let layers = try layers(fixture, 2)
    let bundle = try LayeredBundle(main: fixture.main.url, substitution: [layers[0]])
    var changes = try bundle.changes().makeAsyncIterator()
    try bundle.setSubstitutions([layers[1]])
    #expect(try await changes.next() == BundleChange(paths: nil))
    try (fixture.folder.path / "layer1/file.txt").write("new")
    #expect(try await changes.next()?.paths == ["file.txt"])
    #expect(try bundle.data(forResource: "file.txt") == Data("new".utf8))
    // The former ones are not watched any more.
    try (fixture.folder.path / "layer0/file.txt").write("old")
    try (fixture.folder.path / "layer1/other.txt").write("last")
    #expect(try await changes.next()?.paths == ["other.txt"])
  }

  @Test("a substitution that may be missing counts from when it is there", .timeLimit(.minutes(2)))
  func missing() async throws {
    let fixture = try ResourceFixture()
    try fixture.make("a.txt", "main")
    let later = fixture.folder.path / "later"
    #expect(
      code { _ = try LayeredBundle(main: fixture.main.url, substitution: [later.url]) } == .fileDoesNotExist)
    let options = LookupOptions(allowsMissingSubstitutions: true)
    let bundle = try LayeredBundle(
      main: fixture.main.url, substitution: [later.url, fixture.substitution.url], options: options)
    for _ in 0..<40 { #expect(try bundle.data(forResource: "a.txt") == Data("main".utf8)) }
    var changes = try bundle.changes().makeAsyncIterator()
    try later.makeDirectories()
    try (later / "a.txt").write("later")
    #expect(try await changes.next() == BundleChange(paths: nil))
    #expect(try bundle.data(forResource: "a.txt") == Data("later".utf8))
    #expect(bundle.substitutions.count == 2)
    #expect(
      code { _ = try LayeredBundle(main: (later / "none").url, options: options) } == .fileDoesNotExist)
  }

  @Test("the layers of a mount are the mount's")
  func mount() throws {
    let fixture = try ResourceFixture()
    try fixture.withBundle(.mount) { bundle in
      #expect(code { try bundle.setSubstitutions([]) } == .unsupportedURL && bundle.substitutions == [])
    }
  }
}
