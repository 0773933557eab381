import Bundles
import Foundation

extension LayeredBundle {
  // MARK: - Without a bundle

  /// Finds a resource of a bundle that is opened for this look-up only; nil if there is none, also for one in an archive,
  /// whose URL would not outlive the bundle.
  /// - Parameters:
  ///   - name: the name without the extension, or with it.
  ///   - ext: the extension, with or without its dot; nil or empty if the name has it.
  ///   - subpath: a directory below the resource directory or a localization's directory.
  ///   - bundleURL: the file URL of the bundle's directory.
  ///   - substitution: the file URLs of the directories that override it, in descending order of precedence.
  public static func url(
    forResource name: String?, withExtension ext: String?, subdirectory subpath: String?, in bundleURL: URL,
    substitution: [URL] = []
  ) -> URL? {
    let bundle = once(bundleURL, substitution)
    return bundle?.url(forResource: name, withExtension: ext, subdirectory: subpath).flatMap(file)
  }

  /// Lists the resources of a bundle that is opened for this look-up only, as
  /// `urls(forResourcesWithExtension:subdirectory:localization:)` does, without those in archives.
  public static func urls(
    forResourcesWithExtension ext: String?, subdirectory subpath: String?, in bundleURL: URL,
    substitution: [URL] = []
  ) -> [URL] {
    let bundle = once(bundleURL, substitution)
    return (bundle?.urls(forResourcesWithExtension: ext, subdirectory: subpath) ?? []).compactMap(file)
  }

  /// The path of a resource of the bundle in a directory, as `url(forResource:withExtension:subdirectory:in:substitution:)`
  /// finds it.
  public static func path(
    forResource name: String?, ofType ext: String?, inDirectory bundlePath: String
  ) -> String? {
    url(forResource: name, withExtension: ext, subdirectory: nil, in: directory(bundlePath))?.path
  }

  /// The paths of the resources of the bundle in a directory, as
  /// `urls(forResourcesWithExtension:subdirectory:in:substitution:)` lists them.
  public static func paths(forResourcesOfType ext: String?, inDirectory bundlePath: String) -> [String] {
    urls(forResourcesWithExtension: ext, subdirectory: nil, in: directory(bundlePath)).map(\.path)
  }

  /// Those of the localizations from which texts in the preferred languages are taken, best first.
  ///
  /// Languages match as in ``LookupOptions/languages``. If none does, it is the first localization, as in Foundation.
  /// - Parameters:
  ///   - localizations: the names of localizations, such as `fr` and `pt-BR`.
  ///   - preferences: the languages in order of preference; nil for the user's.
  public static func preferredLocalizations(
    from localizations: [String], forPreferences preferences: [String]? = nil
  ) -> [String] {
    let environment = ProcessInfo.processInfo.environment
    let languages = preferences?.map { Array($0.utf8) } ?? Language.ofUser { environment[$0] }
    let found = Language.preferred(from: localizations.map { Array($0.utf8) }, for: languages)
    return found.isEmpty
      ? Array(localizations.prefix(1)) : found.map { String(decoding: $0, as: UTF8.self) }
  }

  private static func once(_ main: URL, _ substitution: [URL]) -> LayeredBundle? {
    try? LayeredBundle(
      main: main, substitution: substitution, options: LookupOptions(cachesLookups: false))
  }

  private static func file(_ url: URL) -> URL? { url.isFileURL ? url : nil }

  private static func directory(_ path: String) -> URL { URL(fileURLWithPath: path, isDirectory: true) }
}
