import PropertyLists

/// A table of texts whose form depends on numbers: the content of a `.stringsdict` file, or of a catalog in one language.
public struct PluralTable: Sendable {
  /// A text with variables, each of which has a form for each plural category.
  public struct Entry: Sendable, Hashable {
    /// NSStringLocalizedFormatKey: a text with variables such as `%#@files@`.
    public let format: String
    /// The variables by their names.
    public let variables: [String: Variable]
    /// The forms of the whole text, of which a number in it chooses one; nil if only variables have forms.
    public let whole: Variable?

    /// Creates an entry.
    public init(format: String, variables: [String: Variable] = [:], whole: Variable? = nil) {
      self.format = format
      self.variables = variables
      self.whole = whole
    }
  }

  /// A variable of a text.
  public struct Variable: Sendable, Hashable {
    /// NSStringFormatValueTypeKey: the type of the number as in `printf(3)`, such as `d` or `lu`.
    public let valueType: String
    /// The forms by category. `other` serves for those that are missing.
    public let forms: [PluralCategory: String]
    /// The number of the argument, from 1; nil for the next one.
    public let argument: Int?

    /// Creates a variable.
    public init(valueType: String, forms: [PluralCategory: String], argument: Int? = nil) {
      self.valueType = valueType
      self.forms = forms
      self.argument = argument
    }

    /// The form for an argument; nil if it is missing, as `other` is, which is that of numbers with decimals.
    ///
    /// Zero has the form `zero` if there is one, also in languages without that category, as in Foundation.
    func form(for argument: FormatArgument, in language: String) -> String? {
      if case .text = argument { return nil }
      guard let magnitude = argument.magnitude else { return forms[.other] }
      if magnitude == 0, let form = forms[.zero] { return form }
      return forms[PluralCategory(ofMagnitude: magnitude, in: language)] ?? forms[.other]
    }
  }

  private var entries: [ExactText: Entry] = [:]

  /// Creates an empty table.
  public init() {}

  /// The entries, sorted by their keys.
  var sorted: [(key: String, entry: Entry)] {
    entries.map { (key: $0.key.text, entry: $0.value) }
      .sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
  }

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
  /// - Parameter variant: chooses among texts for devices (NSStringDeviceSpecificRuleType) and for widths
  ///   (NSStringVariableWidthRuleType).
  public static func parse(
    _ content: [UInt8], for variant: TextVariant = TextVariant()
  ) -> ParsedTable<PluralTable> {
    let list = PropertyList(content)
    var table = PluralTable()
    for member in list.dictionary.members {
      table[member.key] = member.value.dictionary.flatMap { Entry($0, variant) }
    }
    return ParsedTable(table: table, error: list.error)
  }
}

extension PluralTable.Entry {
  init?(_ dictionary: PropertyListDictionary, _ variant: TextVariant) {
    if let choices = dictionary["NSStringDeviceSpecificRuleType"]?.dictionary {
      guard let entry = Self.first(of: variant.devices(in: choices), variant) else { return nil }
      self = entry
    } else if let choices = dictionary["NSStringVariableWidthRuleType"]?.dictionary {
      guard let entry = Self.first(of: variant.widths(in: choices), variant) else { return nil }
      self = entry
    } else {
      self.init(ofFormat: dictionary)
    }
  }

  private static func first(of choices: some Sequence<PropertyListValue>, _ variant: TextVariant) -> Self? {
    choices.lazy.compactMap { choice in
      choice.string.map { Self(format: $0) } ?? choice.dictionary.flatMap { Self($0, variant) }
    }.first { _ in true }
  }

  private init?(ofFormat dictionary: PropertyListDictionary) {
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
