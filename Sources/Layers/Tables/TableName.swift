import Posix
import StringTables

/// The names of tables of strings, of the catalogs that contribute to them, and of the folders of languages.
public enum TableName {
  private static let table: StaticString = ".strings"
  private static let catalog: StaticString = ".xcstrings"
  private static let folder: StaticString = ".lproj"

  /// Whether a name is that of a table, such as `Main.strings`.
  public static func isTable(_ name: [UInt8], foldsNames: Bool) -> Bool {
    hasSuffix(name, table, foldsNames)
  }

  /// Whether a name is that of a catalog, such as `Main.xcstrings`.
  public static func isCatalog(_ name: [UInt8], foldsNames: Bool) -> Bool {
    hasSuffix(name, catalog, foldsNames)
  }

  /// The name of the tables to which a catalog contributes; nil for the name of something else.
  public static func table(ofCatalog name: [UInt8], foldsNames: Bool) -> [UInt8]? {
    stem(of: name, catalog, foldsNames).map { $0 + Array("\(table)".utf8) }
  }

  /// Whether a name is that of a folder for one language, such as `fr.lproj`.
  public static func isLanguageFolder(_ name: [UInt8], foldsNames: Bool) -> Bool {
    hasSuffix(name, folder, foldsNames)
  }

  /// The name of the catalog that contributes to a table.
  public static func catalog(ofTable name: [UInt8]) -> [UInt8] {
    name.dropLast(table.utf8CodeUnitCount) + Array("\(catalog)".utf8)
  }

  static func isTable(_ name: CName, length: Int, foldsNames: Bool) -> Bool {
    hasSuffix(UnsafeRawBufferPointer(start: name, count: length), table, foldsNames)
  }

  /// The language for which a folder is, by its name; nil for other folders.
  public static func language(ofFolder name: [UInt8], foldsNames: Bool) -> [UInt8]? {
    stem(of: name, folder, foldsNames).map { StringCatalog.key(ofLanguage: $0) }
  }

  static func language(ofFolder name: CName, length: Int, foldsNames: Bool) -> [UInt8]? {
    let name = UnsafeRawBufferPointer(start: name, count: length)
    guard hasSuffix(name, folder, foldsNames) else { return nil }
    return StringCatalog.key(ofLanguage: name.dropLast(folder.utf8CodeUnitCount))
  }

  private static func stem(of name: [UInt8], _ suffix: StaticString, _ foldsNames: Bool) -> [UInt8]? {
    hasSuffix(name, suffix, foldsNames) ? name.dropLast(suffix.utf8CodeUnitCount) : nil
  }

  private static func hasSuffix(_ name: [UInt8], _ suffix: StaticString, _ foldsNames: Bool) -> Bool {
    name.withUnsafeBytes { hasSuffix($0, suffix, foldsNames) }
  }

  /// Whether something precedes the suffix.
  private static func hasSuffix(
    _ name: UnsafeRawBufferPointer, _ suffix: StaticString, _ foldsNames: Bool
  ) -> Bool {
    let count = suffix.utf8CodeUnitCount
    guard name.count > count else { return false }
    return suffix.withUTF8Buffer { suffix in
      for index in 0..<count {
        let (byte, expected) = (name[name.count - count + index], suffix[index])
        let isSame =
          byte == expected || (foldsNames && byte | 0x20 == expected && expected != UInt8(ascii: "."))
        if !isSame { return false }
      }
      return true
    }
  }
}
