import PropertyLists

/// Parses `.xcstrings` files.
struct CatalogParser {
  /// What was parsed so far.
  private(set) var catalog = StringCatalog()
  private let text: [UInt8]
  private let variant: TextVariant

  /// - Parameter text: in UTF-8.
  init(_ text: [UInt8], _ variant: TextVariant) { (self.text, self.variant) = (text, variant) }

  /// - Returns: nil if the whole text was parsed.
  mutating func parse() -> JSONReader.Failure? {
    // It may stand behind the strings, and says which of them count.
    let language = sourceLanguage()
    catalog.sourceLanguage = language
    var reader = JSONReader(text)
    do throws(JSONReader.Failure) {
      try reader.object { reader, name throws(JSONReader.Failure) in
        if name != "strings" {
          _ = try reader.value()
          return
        }
        guard reader.isAtObject() else { throw reader.failure("'strings' is not an object") }
        try reader.object { reader, key throws(JSONReader.Failure) in
          add(key, try reader.value().dictionary ?? PropertyListDictionary(), language)
        }
      }
      try reader.end()
      return nil
    } catch { return error }
  }

  private func sourceLanguage() -> String {
    var (reader, language) = (JSONReader(text), "en")
    try? reader.object { reader, name throws(JSONReader.Failure) in
      let value = try reader.value()
      if name == "sourceLanguage", let text = value.string, !text.isEmpty { language = text }
    }
    return language
  }

  private mutating func add(_ key: String, _ entry: PropertyListDictionary, _ sourceLanguage: String) {
    let comment = entry["comment"]?.string
    var isTranslated = false
    for member in entry["localizations"]?.dictionary?.members ?? [] {
      let isSource = member.key == sourceLanguage
      guard let localization = member.value.dictionary,
        let text = CatalogUnit(variant, acceptsNew: isSource).text(of: localization)
      else { continue }
      catalog.set(key, to: text, in: member.key, comment: comment)
      isTranslated = isTranslated || isSource
    }
    if !isTranslated { catalog.untranslated.set(.init(key: key, value: key, comment: comment)) }
  }
}

/// Makes texts of what a catalog has for a key in a language.
struct CatalogUnit {
  private enum Choice {
    case text(String)
    case forms([PluralCategory: String])
  }

  private let variant: TextVariant
  /// Whether texts in the state `new` count.
  private let acceptsNew: Bool

  init(_ variant: TextVariant, acceptsNew: Bool) { (self.variant, self.acceptsNew) = (variant, acceptsNew) }

  func text(of localization: PropertyListDictionary) -> CatalogText? {
    guard let choice = choice(localization) else { return nil }
    let variables = variables(localization["substitutions"]?.dictionary)
    switch choice {
    case .text(let text):
      return variables.isEmpty ? .plain(text) : .entry(.init(format: text, variables: variables))
    case .forms(let forms):
      // Without a number, as in a plain look-up, the text of most numbers is shown.
      let whole = PluralTable.Variable(valueType: "lld", forms: forms)
      guard let format = PluralCategory.allCases.reversed().lazy.compactMap({ forms[$0] }).first else {
        return nil
      }
      return .entry(.init(format: format, variables: variables, whole: whole))
    }
  }

  private func choice(_ node: PropertyListDictionary) -> Choice? {
    guard let variations = node["variations"]?.dictionary else {
      return unit(node["stringUnit"]?.dictionary).map { .text($0) }
    }
    if let devices = variations["device"]?.dictionary { return first(variant.devices(in: devices)) }
    if let widths = variations["width"]?.dictionary { return first(variant.widths(in: widths)) }
    var forms: [PluralCategory: String] = [:]
    for member in variations["plural"]?.dictionary?.members ?? [] {
      guard let category = PluralCategory(rawValue: member.key), let form = member.value.dictionary,
        case .text(let text)? = choice(form)
      else { continue }
      forms[category] = text
    }
    return forms.isEmpty ? nil : .forms(forms)
  }

  private func first(_ choices: some Sequence<PropertyListValue>) -> Choice? {
    choices.lazy.compactMap { $0.dictionary.flatMap { choice($0) } }.first { _ in true }
  }

  private func unit(_ unit: PropertyListDictionary?) -> String? {
    if unit?["state"]?.string == "new", !acceptsNew { return nil }
    return unit?["value"]?.string
  }

  // MARK: - Substitutions

  private func variables(_ substitutions: PropertyListDictionary?) -> [String: PluralTable.Variable] {
    var variables: [String: PluralTable.Variable] = [:]
    for member in substitutions?.members ?? [] {
      if let variable = member.value.dictionary.flatMap(variable) { variables[member.key] = variable }
    }
    return variables
  }

  private func variable(_ substitution: PropertyListDictionary) -> PluralTable.Variable? {
    let type = substitution["formatSpecifier"]?.string ?? ""
    let specifier = Self.isSpecifier(type) ? type : "lld"
    let forms: [PluralCategory: String]
    switch choice(substitution) {
    case .text(let text)?: forms = [.other: text]
    case .forms(let all)?: forms = all
    case nil: return nil
    }
    return PluralTable.Variable(
      valueType: specifier, forms: forms.mapValues { Self.inserting(specifier, in: $0) },
      argument: Self.argument(substitution["argNum"]))
  }

  private static func isSpecifier(_ text: String) -> Bool {
    (1...8).contains(text.utf8.count) && !text.utf8.contains(UInt8(ascii: "%"))
  }

  private static func argument(_ value: PropertyListValue?) -> Int? {
    guard case .integer(let number)? = value, (1...999).contains(number) else { return nil }
    return Int(number)
  }

  /// Puts the type of the argument in the place of `%arg`.
  private static func inserting(_ specifier: String, in form: String) -> String {
    var scanner = ByteScanner(Array(form.utf8))
    var text: [UInt8] = []
    while scanner.next != nil {
      let start = scanner.offset
      scanner.skip { $0 != UInt8(ascii: "%") }
      text += scanner.text[start..<scanner.offset]
      if scanner.take("%arg") {
        text += Array("%\(specifier)".utf8)
      } else if scanner.take("%%") {
        text += Array("%%".utf8)
      } else if scanner.take("%") {
        text.append(UInt8(ascii: "%"))
      }
    }
    return String(decoding: text, as: UTF8.self)
  }
}
