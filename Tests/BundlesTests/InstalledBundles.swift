import Foundation
import Posix
import TestSupport

@testable import Bundles

/// The bundles of the Swift toolchain or of the system.
enum InstalledBundles {
  /// The directories to search, in order.
  static func roots() throws -> [String] {
    struct Target: Decodable {
      struct Paths: Decodable { var runtimeResourcePath: String }
      var paths: Paths
    }
    let output = try Command("swift", "-print-target-info").check().output
    let resources = try JSONDecoder().decode(Target.self, from: Data(output)).paths.runtimeResourcePath
    // `usr/lib/swift` of the installation.
    let installation = URL(fileURLWithPath: resources).deletingLastPathComponent().deletingLastPathComponent()
    return [installation.path, "/usr/share", "/usr/lib"]
  }

  /// The bundles below the first root that has at least two.
  static func all(in roots: [String]) throws -> [ByteString] {
    for root in roots {
      let bundles = try below(root)
      if bundles.count >= 2 { return bundles }
    }
    return []
  }

  /// The folders with an Info.plist.
  private static func below(_ root: String) throws -> [ByteString] {
    // Ignores directories that are not readable.
    let found = try Command.shell(
      "find -L \"$1\" -name Info.plist -type f 2>/dev/null; true", ByteString(root)
    )
    .check(timeout: 120).outputText
    let bundles = found.split(separator: "\n").map { line in
      let folder = URL(fileURLWithPath: String(line)).deletingLastPathComponent().resolvingSymlinksInPath()
      let isInner = ["Contents", "Resources"].contains(folder.lastPathComponent)
      return isInner ? folder.deletingLastPathComponent().path : folder.path
    }
    return Set(bundles).sorted().map { ByteString($0) }
  }

  /// Lookups of every file and folder of a bundle, with and without its localization, and listings of all types.
  static func questions(about bundle: ByteString, _ lookup: ResourceLookup) throws -> BundleQueries {
    var questions = BundleQueries()
    var lists: Set<BundleQueries.List> = []
    let localizations = try lookup.localizations().map { text([$0]) }
    let root = bundle.text + "/" + text(try lookup.layout().resourceFolder)
    for path in try FileManager.default.subpathsOfDirectory(atPath: root).sorted() {
      var names = path.split(separator: "/").map(String.init)
      let localization = names[0].hasSuffix(".lproj") && names.count > 1 ? names.removeFirst() : nil
      let inside = names.joined(separator: "/")
      questions.lookups.append(.init(path: inside))
      if let localization {
        questions.lookups.append(.init(path: inside, localization: String(localization.dropLast(6))))
      }
      let folder = names.dropLast().joined(separator: "/")
      guard let type = inside.split(separator: ".").last, names.last?.contains(".") == true else { continue }
      for localization in localizations + ["en"] {
        lists.insert(.init(type: String(type), folder: folder, localization: localization))
      }
    }
    questions.lists = lists.sorted { "\($0)" < "\($1)" }
    return questions
  }
}
