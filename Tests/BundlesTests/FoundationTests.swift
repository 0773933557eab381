import Foundation
import Layers
import Posix
import TestSupport
import Testing

@testable import Bundles

/// Compares lookups in a single layer with Foundation's Bundle.
///
/// Bundle runs in a separate process, because `developmentLocalization` traps without an Info.plist.
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

  /// The results of both implementations for one bundle.
  private struct Comparison {
    let lookup: ResourceLookup
    private let path: ByteString

    /// The language is `en`, which Foundation prefers without user defaults.
    init(_ path: ByteString) throws {
      self.path = path
      let layer = try DirectoryLayer(path: path.bytes, index: 0, covered: nil)
      lookup = ResourceLookup(
        stack: LayerStack(layers: [layer]), options: ResourceOptions(languages: names("en", ":")))
    }

    func theirs(_ questions: BundleQueries) throws -> BundleReplies {
      let folder = try TemporaryFolder()
      try (folder / "questions").write([UInt8](try JSONEncoder().encode(questions)))
      let probe = try Binary.besideTheTests("foundationprobe")
      let output = try Command([probe, path, folder / "questions"]).check(timeout: 120).output
      return try JSONDecoder().decode(BundleReplies.self, from: Data(output))
    }

    func ours(_ question: BundleQueries.Lookup) throws -> String? {
      try lookup.find(names(question.path, "/"), localization: question.localization.map { Array($0.utf8) })
        .map { text($0.path) }
    }

    func ours(_ question: BundleQueries.List) throws -> [String] {
      try lookup.list(
        type: Array(question.type.utf8), in: names(question.folder, "/"),
        localization: Array(question.localization.utf8)
      ).map { text($0.path) }
    }

    /// Expects equal results for all queries.
    func expectAgreement(_ questions: BundleQueries) throws {
      let theirs = try theirs(questions)
      let information = try lookup.infoPlist()
      #expect(information.identifier == theirs.identifier, "\(path)")
      if questions.includesRegion { #expect(information.developmentRegion == theirs.region, "\(path)") }
      let localizations = try lookup.localizations().map { text([$0]) }
      // Foundation includes the development region even if it has no folder.
      let region = Set([information.developmentRegion].compactMap { $0 })
      #expect(
        Set(localizations).union(region) == Set(theirs.localizations).union(region), "\(path)")
      try #require(theirs.lookups.count == questions.lookups.count)
      for (question, answer) in zip(questions.lookups, theirs.lookups) {
        #expect(
          try ours(question) == answer,
          "\(path): \(question.path), \(question.localization ?? "any")")
      }
      try #require(theirs.lists.count == questions.lists.count)
      for (question, answer) in zip(questions.lists, theirs.lists) {
        #expect(try ours(question) == answer, "\(path): \(question)")
      }
    }
  }

  @Test("lookups in all layouts", arguments: ["", "Resources/", "Contents/Resources/"])
  func lookups(resources: String) throws {
    let fixture = try LookupFixture(Self.files.map { "0 \(resources)\($0)" }, layers: 1)
    let plist = "{ CFBundleDevelopmentRegion = en; CFBundleIdentifier = \"org.example.compared\"; }"
    let folder = ["": "", "Resources/": "Resources/", "Contents/Resources/": "Contents/"][resources] ?? ""
    try (fixture.path(0) / ByteString(folder + "Info.plist")).write(plist)
    var questions = BundleQueries()
    questions.includesRegion = true
    questions.lookups = Self.questions.flatMap { path in
      [nil, "en", "fr", "Base", "de"].map { BundleQueries.Lookup(path: path, localization: $0) }
    }
    let comparison = try Comparison(try fixture.path(0))
    try comparison.expectAgreement(questions)
    #expect(try comparison.lookup.infoPlist().identifier == "org.example.compared")
  }

  @Test("lists by type and localization", arguments: ["", "Resources/", "Contents/Resources/"])
  func lists(resources: String) throws {
    let fixture = try LookupFixture(Self.files.map { "0 \(resources)\($0)" }, layers: 1)
    var questions = BundleQueries()
    for folder in ["", "D", "D/E", "nothing"] {
      for (type, localization) in [
        ("txt", "fr"), ("txt", "en"), ("gz", "en"), ("nib", "en"), ("lproj", "fr"),
      ] {
        questions.lists.append(.init(type: type, folder: folder, localization: localization))
      }
    }
    try Comparison(try fixture.path(0)).expectAgreement(questions)
  }

  @Test("installed bundles", .timeLimit(.minutes(5)))
  func real() throws {
    let roots = try InstalledBundles.roots()
    let bundles = try InstalledBundles.all(in: roots)
    try #require(bundles.count >= 2, "two bundles are required below one of \(roots)")
    var localized = 0
    for path in bundles {
      let comparison = try Comparison(path)
      let questions = try InstalledBundles.questions(about: path, comparison.lookup)
      #expect(!questions.lookups.isEmpty, "\(path)")
      localized += questions.lookups.count { $0.localization != nil }
      try comparison.expectAgreement(questions)
    }
    #expect(localized > 0)
  }
}
