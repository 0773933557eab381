/// The categories of numbers by which languages choose a plural form (Unicode CLDR).
public enum PluralCategory: String, Sendable, Hashable, CaseIterable {
  case zero, one, two, few, many, other

  /// The category of an integer in a language, such as `fr` or `pt-PT`; `other` for an unknown language.
  public init(of number: Int64, in language: String) {
    self.init(ofMagnitude: number.magnitude, in: language)
  }

  /// The category of an integer without its sign, which no language regards.
  public init(ofMagnitude number: UInt64, in language: String) {
    self = PluralRule(language: language)?.category(of: number) ?? .other
  }
}
