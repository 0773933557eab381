import Foundation
import Layers
import Posix
import TestSupport
import Testing

@testable import Bundles

/// Where Foundation's Bundle defines an answer for a single layer, ours is the same.
///
/// Without an Info.plist its `developmentLocalization` traps, so only bundles that have one are asked for it.
@Suite struct FoundationTests {
  private static let files = [
    "a.txt", "en.lproj/a.txt", "en.lproj/b.txt", "Base.lproj/b.txt", "Base.lproj/c.txt", "D/d.txt",
    "en.lproj/D/d.txt", "en.lproj/D/e.txt", "D/en.lproj/f.txt", "Base.lproj/D/g.txt", "fr.lproj/a.txt",
    "fr.lproj/h.txt", "fr.lproj/D/h.txt", "noext", "x.y.txt", "M.nib/i.txt", "en.lproj/N.nib/i.txt",
    "j.tar.gz", ".k.txt", "D/E/l.txt", "fr.lproj/D/E/l.txt",
  ]
  private static let questions = [
    "a.txt", "b.txt", "c.txt", "d.txt", "D/d.txt", "D/e.txt", "D/f.txt", "D/g.txt", "h.txt", "D/h.txt",
    "noext", "x.y.txt", "x.y", "M.nib", "N.nib", "j.tar.gz", ".k.txt", "D", "E", "D/E", "D/E/l.txt", "A.txt",
    "nothing", "nothing/a.txt", "en.lproj", "en.lproj/b.txt",
  ]

  private struct Answers {
    let bundle: Bundle
    let lookup: ResourceLookup
    let root: String

    /// - Parameter path: the bundle. With no preferences of the user, Foundation prefers English.
    init(_ path: ByteString) throws {
      bundle = try #require(Bundle(path: path.text))
      root = bundle.bundlePath + "/"
      let layer = try DirectoryLayer(path: path.bytes, index: 0, covered: nil)
      lookup = ResourceLookup(
        stack: LayerStack(layers: [layer]), options: ResourceOptions(languages: names("en", ":")))
    }

    func ours(_ path: String, _ localization: String?) throws -> String? {
      try lookup.find(names(path, "/"), localization: localization.map { Array($0.utf8) })
        .map { text($0.path) }
    }

    /// Foundation's answer, which sometimes ends with a slash, or has two.
    func theirs(_ path: String, _ localization: String?) -> String? {
      let folder = path.contains("/") ? (path as NSString).deletingLastPathComponent : nil
      let name = (path as NSString).lastPathComponent
      let found =
        localization.map {
          bundle.path(forResource: name, ofType: nil, inDirectory: folder, forLocalization: $0)
        } ?? bundle.path(forResource: name, ofType: nil, inDirectory: folder)
      return found.map { text(names(String($0.dropFirst(root.count)), "/")) }
    }
  }

  @Test("lookups in all layouts", arguments: ["", "Resources/", "Contents/Resources/"])
  func lookups(resources: String) throws {
    let fixture = try Fixture(Self.files.map { "0 \(resources)\($0)" }, layers: 1)
    let plist = "{ CFBundleDevelopmentRegion = en; CFBundleIdentifier = \"org.example.compared\"; }"
    let place = ["": "", "Resources/": "Resources/", "Contents/Resources/": "Contents/"][resources] ?? ""
    try (fixture.path(0) / ByteString(place + "Info.plist")).write(plist)
    let answers = try Answers(try fixture.path(0))
    #expect(try answers.lookup.information().identifier == answers.bundle.bundleIdentifier)
    #expect(try answers.lookup.information().developmentRegion == answers.bundle.developmentLocalization)
    let localizations = try answers.lookup.localizations().map { text([$0]) }
    #expect(Set(localizations) == Set(answers.bundle.localizations))
    for question in Self.questions {
      for localization in [nil, "en", "fr", "Base", "de"] {
        let ours = try answers.ours(question, localization)
        #expect(ours == answers.theirs(question, localization), "\(question), \(localization ?? "any")")
      }
    }
  }

  @Test("lists by type and localization", arguments: ["", "Resources/", "Contents/Resources/"])
  func lists(resources: String) throws {
    let fixture = try Fixture(Self.files.map { "0 \(resources)\($0)" }, layers: 1)
    let answers = try Answers(try fixture.path(0))
    for folder in ["", "D", "D/E", "nothing"] {
      for (type, localization) in [
        ("txt", "fr"), ("txt", "en"), ("gz", "en"), ("nib", "en"), ("lproj", "fr"),
      ] {
        let theirs = answers.bundle.paths(
          forResourcesOfType: type, inDirectory: folder.isEmpty ? nil : folder, forLocalization: localization)
        let ours = try answers.lookup.list(
          type: Array(type.utf8), in: names(folder, "/"), localization: Array(localization.utf8))
        #expect(
          ours.map { text($0.path) } == theirs.map { String($0.dropFirst(answers.root.count)) }.sorted(),
          "\(folder), \(type), \(localization)")
      }
    }
  }

  /// The bundles that come with the compiler.
  private static let installed: [String] = {
    guard let found = try? Command.shell("readlink -f \"$(command -v swift)\"").check().outputText else {
      return []
    }
    let folder = (found as NSString).deletingLastPathComponent + "/../share/pm"
    let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
    return names.filter { $0.hasSuffix(".resources") }.map { folder + "/" + $0 }.sorted()
  }()

  @Test("the bundles of the Swift installation", .enabled(if: installed.count >= 2))
  func real() throws {
    for path in Self.installed {
      let answers = try Answers(ByteString(URL(fileURLWithPath: path).standardized.path))
      #expect(try answers.lookup.information().identifier == answers.bundle.bundleIdentifier)
      let listed = try answers.lookup.list()
      #expect(!listed.isEmpty)
      for resource in listed where resource.localization == nil {
        let name = text([try #require(resource.path.last)])
        #expect(try answers.ours(name, nil) == answers.theirs(name, nil), "\(path): \(name)")
      }
    }
  }
}
