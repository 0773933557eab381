import Foundation

/// A source of resources and localized strings: a ``LayeredBundle`` or Foundation's `Bundle`.
///
/// Code that takes it does not depend on where its resources are:
///
/// ```swift
/// func title(in bundle: any ResourceBundle) -> String { bundle.localizedString(forKey: "title") }
/// ```
public protocol ResourceBundle: AnyObject, Sendable {
  /// The URL of the bundle's directory or archive.
  var bundleURL: URL { get }
  /// The URL of the directory with the resources; nil without one.
  var resourceURL: URL? { get }
  /// CFBundleIdentifier; nil without it.
  var bundleIdentifier: String? { get }
  /// Info.plist; nil without it.
  var infoDictionary: [String: Any]? { get }
  /// The strings of the tables `InfoPlist`.
  var localizedInfoDictionary: [String: Any]? { get }
  /// The localizations that the bundle has.
  var localizations: [String] { get }
  /// The localizations that are searched, in order.
  var preferredLocalizations: [String] { get }

  /// The value of a key of Info.plist, localized if there is a string for it.
  func object(forInfoDictionaryKey key: String) -> Any?

  /// The string of a key; without one, the value, or the key if that is nil or empty.
  func localizedString(forKey key: String, value: String?, table tableName: String?) -> String

  /// Whether a table has a string for a key.
  func hasLocalizedString(forKey key: String, table tableName: String?) -> Bool

  /// Finds a resource, unlocalized or in the preferred localizations; nil if there is none.
  func url(forResource name: String?, withExtension ext: String?, subdirectory subpath: String?) -> URL?

  /// Lists the resources with an extension.
  func resourceURLs(withExtension ext: String?, subdirectory subpath: String?) -> [URL]

  /// The path of a resource's file; nil if there is none.
  func path(forResource name: String?, ofType ext: String?, inDirectory subpath: String?) -> String?

  /// The paths of the resources with an extension.
  func paths(forResourcesOfType ext: String?, inDirectory subpath: String?) -> [String]

  /// Loads a resource.
  /// - Throws: `URLError`: `.fileDoesNotExist`, `.fileIsDirectory`, `.noPermissionsToReadFile` and the like.
  func data(
    forResource name: String, withExtension ext: String?, subdirectory subpath: String?
  ) throws(URLError) -> Data
}

extension ResourceBundle {
  /// The string of a key; without one, the key.
  public func localizedString(forKey key: String, table tableName: String? = nil) -> String {
    localizedString(forKey: key, value: nil, table: tableName)
  }

  /// Finds a resource; nil if there is none.
  public func url(forResource name: String?, withExtension ext: String? = nil) -> URL? {
    url(forResource: name, withExtension: ext, subdirectory: nil)
  }

  /// Loads a resource.
  /// - Throws: `URLError`, as `data(forResource:withExtension:subdirectory:)`.
  public func data(forResource name: String, withExtension ext: String? = nil) throws(URLError) -> Data {
    try data(forResource: name, withExtension: ext, subdirectory: nil)
  }
}
