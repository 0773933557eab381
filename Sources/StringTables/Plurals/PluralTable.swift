import PropertyLists

/// A table of texts whose form depends on numbers: the content of a `.stringsdict` file.
public struct PluralTable: Sendable {
  /// A text with variables, each of which has a form for each plural category.
  public struct Entry: Sendable, Hashable {
    /// NSStringLocalizedFormatKey: a text with variables such as `%#@files@`.
    public let format: String
    /// The variables by their names.
    public let variables: [String: Variable]

    /// Creates an entry.
    public init(format: String, variables: [String: Variable]) {
      self.format = format
      self.variables = variables
    }
  }

  /// A variable of a text.
  public struct Variable: Sendable, Hashable {
    /// NSStringFormatValueTypeKey: the type of the number as in `printf(3)`, such as `d` or `lu`.
    public let valueType: String
    /// The forms by category. `other` serves for those that are missing.
    public let forms: [PluralCategory: String]

    /// Creates a variable.
    public init(valueType: String, forms: [PluralCategory: String]) {
      self.valueType = valueType
      self.forms = forms
    }

    /// The form for an integer; nil if it is missing, as `other` is.
    ///
    /// Zero has the form `zero` if there is one, also in languages without that category, as in Foundation.
    func form(for magnitude: UInt64, in language: String) -> String? {
      if magnitude == 0, let form = forms[.zero] { return form }
      return forms[PluralCategory(ofMagnitude: magnitude, in: language)] ?? forms[.other]
    }
  }

  private var entries: [ExactText: Entry] = [:]

  /// Creates an empty table.
  public init() {}

  /// The number of entries.
  public var count: Int { entries.count }

  /// The entry of a key; nil without it.
  public subscript(key: String) -> Entry? {
    // Few tables have any; the hash of a key is not free.
    get { entries.isEmpty ? nil : entries[ExactText(key)] }
    set { entries[ExactText(key)] = newValue }
  }

  /// Parses a `.stringsdict` file: a property list of any format. Entries without a format, and variables of another
  /// type than NSStringPluralRuleType, are left out.
  public static func parse(_ content: [UInt8]) -> ParsedTable<PluralTable> {
    let list = PropertyList(content)
    var table = PluralTable()
    for member in list.dictionary.members {
      table[member.key] = member.value.dictionary.flatMap(Entry.init)
    }
    return ParsedTable(table: table, error: list.error)
  }
}

extension PluralTable.Entry {
  fileprivate init?(_ dictionary: PropertyListDictionary) {
    guard let format = dictionary["NSStringLocalizedFormatKey"]?.string else { return nil }
    var variables: [String: PluralTable.Variable] = [:]
    for member in dictionary.members {
      if let variable = member.value.dictionary.flatMap(PluralTable.Variable.init) {
        variables[member.key] = variable
      }
    }
    self.init(format: format, variables: variables)
  }
}

extension PluralTable.Variable {
  fileprivate init?(_ dictionary: PropertyListDictionary) {
    guard dictionary["NSStringFormatSpecTypeKey"]?.string == "NSStringPluralRuleType" else { return nil }
    var forms: [PluralCategory: String] = [:]
    for member in dictionary.members {
      if let category = PluralCategory(rawValue: member.key) { forms[category] = member.value.string }
    }
    self.init(valueType: dictionary["NSStringFormatValueTypeKey"]?.string ?? "d", forms: forms)
  }
}
