import BundleResources

/// The program's texts, from the tables `Localizable` of the bundle and its substitutions.
struct Phrases {
  private let bundle: LayeredBundle
  private let language: String?

  /// - Parameters:
  ///   - bundle: the bundle.
  ///   - language: the localization to prefer; nil for the bundle's own preference.
  /// - Throws: ``GreeterError/noLocalization(_:available:)`` unless a layer of the bundle has the localization.
  init(bundle: LayeredBundle, language: String?) throws(GreeterError) {
    let available = bundle.localizations
    if let language, !available.contains(language) {
      throw .noLocalization(language, available: available)
    }
    (self.bundle, self.language) = (bundle, language)
  }

  /// The text of a key with its arguments, in the right plural form.
  func callAsFunction(_ key: String, _ arguments: any CustomStringConvertible...) -> String {
    bundle.localizedString(forKey: key, localization: localization(of: key), arguments: arguments)
  }

  /// The language, if it has the key: a substitution may add a language that is not complete.
  private func localization(of key: String) -> String? {
    let missing = "\0"
    let found = bundle.localizedString(forKey: key, value: missing, localization: language)
    return found == missing ? nil : language
  }
}
