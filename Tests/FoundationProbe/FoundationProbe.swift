import Foundation
import TestSupport

/// `foundationprobe BUNDLE QUESTIONS`: answers a file of ``BundleQueries`` with Foundation's Bundle and prints
/// ``BundleReplies``, both in JSON.
@main struct FoundationProbe {
  static func main() throws {
    let arguments = CommandLine.arguments
    guard arguments.count == 3, let bundle = Bundle(path: arguments[1]) else {
      print("usage: foundationprobe BUNDLE QUESTIONS")
      exit(2)
    }
    let text = try Data(contentsOf: URL(fileURLWithPath: arguments[2]))
    let answers = answer(try JSONDecoder().decode(BundleQueries.self, from: text), of: bundle)
    FileHandle.standardOutput.write(try JSONEncoder().encode(answers))
  }

  private static func answer(_ questions: BundleQueries, of bundle: Bundle) -> BundleReplies {
    BundleReplies(
      identifier: bundle.bundleIdentifier,
      region: questions.includesRegion ? bundle.developmentLocalization : nil,
      localizations: bundle.localizations,
      lookups: questions.lookups.map { path(of: $0, in: bundle) },
      lists: questions.lists.map { paths(of: $0, in: bundle) })
  }

  private static func path(of question: BundleQueries.Lookup, in bundle: Bundle) -> String? {
    let names = question.path.split(separator: "/").map(String.init)
    let folder = names.count > 1 ? names.dropLast().joined(separator: "/") : nil
    let found =
      question.localization.map {
        bundle.path(forResource: names.last, ofType: nil, inDirectory: folder, forLocalization: $0)
      } ?? bundle.path(forResource: names.last, ofType: nil, inDirectory: folder)
    return found.map { relative($0, bundle) }
  }

  private static func paths(of question: BundleQueries.List, in bundle: Bundle) -> [String] {
    bundle.paths(
      forResourcesOfType: question.type, inDirectory: question.folder.isEmpty ? nil : question.folder,
      forLocalization: question.localization
    ).map { relative($0, bundle) }.sorted()
  }

  /// The path relative to the bundle. Foundation may return trailing or doubled slashes.
  private static func relative(_ path: String, _ bundle: Bundle) -> String {
    path.dropFirst(bundle.bundlePath.count).split(separator: "/").joined(separator: "/")
  }
}
