import Foundation

/// The methods with exactly the parameters of Foundation's.
extension LayeredBundle: ResourceBundle {
  /// As `url(forResource:withExtension:subdirectory:localization:)`.
  public func url(
    forResource name: String?, withExtension ext: String?, subdirectory subpath: String?
  ) -> URL? {
    url(forResource: name, withExtension: ext, subdirectory: subpath, localization: nil)
  }

  /// As `urls(forResourcesWithExtension:subdirectory:localization:)`, which Foundation's `Bundle` has with another result.
  public func resourceURLs(withExtension ext: String?, subdirectory subpath: String?) -> [URL] {
    urls(forResourcesWithExtension: ext, subdirectory: subpath, localization: nil)
  }

  /// As `path(forResource:ofType:inDirectory:forLocalization:)`.
  public func path(forResource name: String?, ofType ext: String?, inDirectory subpath: String?) -> String? {
    path(forResource: name, ofType: ext, inDirectory: subpath, forLocalization: nil)
  }

  /// As `paths(forResourcesOfType:inDirectory:forLocalization:)`.
  public func paths(forResourcesOfType ext: String?, inDirectory subpath: String?) -> [String] {
    paths(forResourcesOfType: ext, inDirectory: subpath, forLocalization: nil)
  }

  /// As `data(forResource:withExtension:subdirectory:localization:)`.
  public func data(
    forResource name: String, withExtension ext: String?, subdirectory subpath: String?
  ) throws(URLError) -> Data {
    try data(forResource: name, withExtension: ext, subdirectory: subpath, localization: nil)
  }
}
