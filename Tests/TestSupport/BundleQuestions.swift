/// What Foundation's Bundle is asked about a bundle, in a process of its own: what it does not like it traps on.
public struct BundleQuestions: Codable, Sendable {
  /// A search for one resource.
  public struct Lookup: Codable, Sendable, Hashable {
    /// The names below the resource folder, with slashes between.
    public var path: String
    /// The only localization to look in; nil: the preferred ones.
    public var localization: String?

    /// That search.
    public init(path: String, localization: String? = nil) {
      self.path = path
      self.localization = localization
    }
  }

  /// A search for all resources of a type.
  public struct List: Codable, Sendable, Hashable {
    /// The names' extension.
    public var type: String
    /// A sub-folder; nothing: none.
    public var folder: String
    /// The localization.
    public var localization: String

    /// That search.
    public init(type: String, folder: String, localization: String) {
      self.type = type
      self.folder = folder
      self.localization = localization
    }
  }

  /// Whether the development region is asked for, which needs an Info.plist.
  public var asksRegion = false
  /// The searches.
  public var lookups: [Lookup] = []
  /// The lists.
  public var lists: [List] = []

  /// No questions.
  public init() {}
}

/// What it answers; paths begin at the bundle's root.
public struct BundleAnswers: Codable, Sendable {
  /// The bundle's identifier.
  public var identifier: String?
  /// Its development region, if it was asked for.
  public var region: String?
  /// Its localizations.
  public var localizations: [String]
  /// For each search the path, nil where nothing was found.
  public var lookups: [String?]
  /// For each list the paths, sorted.
  public var lists: [[String]]

  /// Those answers.
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
