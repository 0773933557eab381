import Bundles
import Foundation
import Posix
import PropertyLists
import StringTables

/// A parsed Info.plist; nil if it is malformed or cannot be read.
struct InfoPlistContent: Sendable {
  let dictionary: PropertyListDictionary?

  /// As for a mount, larger files count as absent.
  private static let maxFileSize = 4 << 20

  fileprivate init(_ file: ResourceVersion) {
    guard let content = try? file.content(limit: Self.maxFileSize) else {
      dictionary = nil
      return
    }
    let list = PropertyList(content)
    dictionary = list.error == nil ? list.dictionary : nil
  }
}

extension LayeredBundle {
  /// The Info.plist files of all layers, merged key by key; nil if there is none. A malformed one counts as absent.
  ///
  /// The values are `String`, `Int`, `Double`, `Bool`, `Data`, `Date`, `[Any]` and `[String: Any]`.
  public var infoDictionary: [String: Any]? {
    let dictionaries = infoDictionaries()
    if dictionaries.isEmpty { return nil }
    var merged: [String: Any] = [:]
    for dictionary in dictionaries.reversed() {
      for member in dictionary.members { merged[member.key] = member.value.foundationValue }
    }
    return merged
  }

  /// The value of a key: the string that a table `InfoPlist` has for it, or else that of ``infoDictionary``.
  public func object(forInfoDictionaryKey key: String) -> Any? {
    // The key of an untranslated entry is no value.
    let localized = first(TableQuery("InfoPlist", nil)) { $0.content.strings[key] }
    if let localized { return localized }
    return infoDictionaries().lazy.compactMap { $0[key] }.first?.foundationValue
  }

  /// The strings of the tables `InfoPlist` in all layers and preferred localizations, by their keys; nil without a table.
  public var localizedInfoDictionary: [String: Any]? {
    var merged: [String: Any]?
    for tables in tables(TableQuery("InfoPlist", nil)) {
      merged = tables.strings.entries.reduce(into: merged ?? [:]) { merged, entry in
        if merged[entry.key] == nil { merged[entry.key] = entry.value }
      }
    }
    return merged
  }

  /// CFBundleIdentifier; nil without it.
  public var bundleIdentifier: String? {
    infoDictionaries().lazy.compactMap { $0["CFBundleIdentifier"]?.string }.first
  }

  /// Top first.
  private func infoDictionaries() -> [PropertyListDictionary] {
    guard let layers = try? layers(), let files = try? layers.lookup.infoPlistVersions() else { return [] }
    return files.compactMap { file in
      let path = layers.path(of: file.path, layer: file.layer)
      return infoPlists.value(of: file, at: path, make: InfoPlistContent.init).dictionary
    }
  }
}

extension PropertyListValue {
  /// The value as Foundation has it; an empty `Data` for what has no type.
  fileprivate var foundationValue: Any {
    switch self {
    case .string(let text): text
    case .integer(let value): Int(value)
    case .unsigned(let value): value
    case .real(let value): value
    case .boolean(let value): value
    case .data(let bytes): Data(bytes)
    case .date(let seconds): Date(timeIntervalSinceReferenceDate: seconds)
    case .array(let values): values.map(\.foundationValue)
    case .dictionary(let dictionary):
      Dictionary(dictionary.members.map { ($0.key, $0.value.foundationValue) }) { $1 }
    case .unknown: Data()
    }
  }
}
