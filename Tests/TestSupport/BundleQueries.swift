/// Queries for Foundation's `Bundle`, run by `foundationprobe`: a separate process because `Bundle` traps on
/// malformed input.
public struct BundleQueries: Codable, Sendable {
  /// A search for one resource.
  public struct Lookup: Codable, Sendable, Hashable {
    /// The names below the resource folder, with slashes between.
    public var path: String
    /// The only localization to search; nil for the preferred ones.
    public var localization: String?

    /// Creates the query.
    public init(path: String, localization: String? = nil) {
      self.path = path
      self.localization = localization
    }
  }

  /// A search for all resources with a file name extension.
  public struct List: Codable, Sendable, Hashable {
    /// The extension.
    public var type: String
    /// A sub-folder; empty for the resource folder itself.
    public var folder: String
    /// The localization.
    public var localization: String

    /// Creates the query.
    public init(type: String, folder: String, localization: String) {
      self.type = type
      self.folder = folder
      self.localization = localization
    }
  }

  /// Whether to report the development region, which needs an Info.plist.
  public var includesRegion = false
  /// Searches for one resource.
  public var lookups: [Lookup] = []
  /// Searches by extension.
  public var lists: [List] = []

  /// Creates an empty set of queries.
  public init() {}
}

/// The replies to ``BundleQueries``; paths are relative to the bundle's root.
public struct BundleReplies: Codable, Sendable {
  /// The bundle's identifier.
  public var identifier: String?
  /// Its development region, if requested.
  public var region: String?
  /// Its localizations.
  public var localizations: [String]
  /// The path for each lookup; nil if there is none.
  public var lookups: [String?]
  /// The sorted paths for each list.
  public var lists: [[String]]

  /// Creates the replies.
  public init(
    identifier: String?, region: String?, localizations: [String], lookups: [String?], lists: [[String]]
  ) {
    self.identifier = identifier
    self.region = region
    self.localizations = localizations
    self.lookups = lookups
    self.lists = lists
  }
}
