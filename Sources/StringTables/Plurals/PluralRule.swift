/// The rules by which languages choose the category of a whole number, each named after a language that has it.
///
/// They follow from the cardinal rules of Unicode CLDR, where a whole number has no decimals.
enum PluralRule: Sendable, CaseIterable {
  case english, french, hindi, spanish, tachelhit, centralAtlas, icelandic, filipino, latvian, colognian,
    inuktitut
  case romanian, croatian, scottish, slovenian, czech, polish, russian, lithuanian, breton, maltese, irish,
    manx
  case cornish, arabic, welsh

  /// The rule of a language by its first subtag; nil for languages with one form only, and for unknown ones.
  init?(language: String) {
    let subtags = language.lowercased().split(maxSplits: 2) { $0 == "-" || $0 == "_" }
    guard let first = subtags.first else { return nil }
    if first == "pt", subtags.count > 1, subtags[1] == "pt" {
      self = .spanish
      return
    }
    guard let rule = Self.byLanguage[String(first)] else { return nil }
    self = rule
  }

  private static let byLanguage: [String: PluralRule] = {
    var rules: [String: PluralRule] = [:]
    for (rule, languages) in languages {
      for language in languages.split(separator: " ") { rules[String(language)] = rule }
    }
    return rules
  }()

  private static let languages: [(PluralRule, String)] = [
    (
      .english,
      """
      af an asa ast az bal bem bez bg brx ce cgg chr ckb da de dv ee el en eo et eu fi fo fur fy gl gsw ha haw hu ia \
      io jgo ji jmc ka kaj kcg kk kkj kl ks ksb ku ky lb lg lij mas mgo ml mn mr nah nb nd ne nl nn nnh no nr ny \
      nyn om or os pap ps rm rof rwk saq sc sd sdh seh sn so sq ss ssy st sv sw syr ta te teo tig tk tn tr ts ug \
      ur uz ve vo vun wae xh xog yi
      """
    ),
    (.french, "fr pt"), (.spanish, "ca es it lld scn vec"),
    (.hindi, "ak am as bho bn csw doi fa ff gu guw hi hy kab kn ln mg nso pa pcm si ti wa zu"),
    (.tachelhit, "shi"), (.centralAtlas, "tzm"), (.icelandic, "is mk"), (.filipino, "ceb fil tl"),
    (.latvian, "lv prg"), (.colognian, "blo ksh lag"),
    (.inuktitut, "he iu iw naq sat se sma smi smj smn sms"),
    (.romanian, "mo ro"), (.croatian, "bs hr sh sr"), (.scottish, "gd"), (.slovenian, "dsb hsb sl"),
    (.czech, "cs sk"), (.polish, "pl"), (.russian, "be ru uk"), (.lithuanian, "lt"), (.breton, "br"),
    (.maltese, "mt"), (.irish, "ga"), (.manx, "gv"), (.cornish, "kw"), (.arabic, "ar ars"), (.welsh, "cy"),
  ]

  func category(of number: UInt64) -> PluralCategory {
    let (ten, hundred) = (number % 10, number % 100)
    switch self {
    case .english: return number == 1 ? .one : .other
    case .hindi: return number < 2 ? .one : .other
    case .french: return number < 2 ? .one : number % 1_000_000 == 0 ? .many : .other
    case .spanish: return number == 1 ? .one : number != 0 && number % 1_000_000 == 0 ? .many : .other
    case .centralAtlas: return number < 2 || (11...99).contains(number) ? .one : .other
    case .tachelhit: return number < 2 ? .one : number <= 10 ? .few : .other
    case .icelandic: return ten == 1 && hundred != 11 ? .one : .other
    case .filipino: return (1...3).contains(number) || ![4, 6, 9].contains(ten) ? .one : .other
    case .colognian: return number == 0 ? .zero : number == 1 ? .one : .other
    case .inuktitut: return number == 1 ? .one : number == 2 ? .two : .other
    case .romanian: return number == 1 ? .one : number == 0 || (1...19).contains(hundred) ? .few : .other
    case .czech: return number == 1 ? .one : (2...4).contains(number) ? .few : .other
    case .latvian, .croatian, .polish, .russian, .lithuanian: return baltoSlavic(number, ten, hundred)
    case .scottish, .irish, .welsh, .breton, .manx, .cornish: return celtic(number, ten, hundred)
    case .slovenian:
      return hundred == 1 ? .one : hundred == 2 ? .two : hundred == 3 || hundred == 4 ? .few : .other
    case .maltese, .arabic: return semitic(number, hundred)
    }
  }

  private func baltoSlavic(_ number: UInt64, _ ten: UInt64, _ hundred: UInt64) -> PluralCategory {
    let isTeen = (11...19).contains(hundred)
    let isFew = (2...4).contains(ten) && !(12...14).contains(hundred)
    switch self {
    case .latvian: return ten == 0 || isTeen ? .zero : ten == 1 ? .one : .other
    case .lithuanian: return ten == 0 || isTeen ? .other : ten == 1 ? .one : .few
    case .croatian: return ten == 1 && hundred != 11 ? .one : isFew ? .few : .other
    case .polish: return number == 1 ? .one : isFew ? .few : .many
    default: return ten == 1 && hundred != 11 ? .one : isFew ? .few : .many
    }
  }

  private func semitic(_ number: UInt64, _ hundred: UInt64) -> PluralCategory {
    if number == 1 { return .one }
    if number == 2 { return .two }
    if case .maltese = self {
      return number == 0 || (3...10).contains(hundred) ? .few : (11...19).contains(hundred) ? .many : .other
    }
    return number == 0 ? .zero : (3...10).contains(hundred) ? .few : hundred >= 11 ? .many : .other
  }

  private func celtic(_ number: UInt64, _ ten: UInt64, _ hundred: UInt64) -> PluralCategory {
    switch self {
    case .breton: return breton(number, ten, hundred)
    case .cornish: return cornish(number, hundred)
    case .manx: return ten == 1 ? .one : ten == 2 ? .two : hundred % 20 == 0 ? .few : .other
    case .scottish:
      return number == 1 || number == 11
        ? .one : number == 2 || number == 12 ? .two : (3...19).contains(number) ? .few : .other
    case .irish:
      return number == 1
        ? .one
        : number == 2 ? .two : (3...6).contains(number) ? .few : (7...10).contains(number) ? .many : .other
    default:
      return [0: .zero, 1: .one, 2: .two, 3: .few, 6: .many][number] ?? .other
    }
  }

  private func breton(_ number: UInt64, _ ten: UInt64, _ hundred: UInt64) -> PluralCategory {
    if number != 0, number % 1_000_000 == 0 { return .many }
    // The tens of 10, 70 and 90 are counted with the teens.
    let tens = hundred / 10
    let isTeen = tens == 1 || tens == 7 || tens == 9
    switch ten {
    case 1 where !isTeen: return .one
    case 2 where !isTeen: return .two
    case 3 where !isTeen, 4 where !isTeen, 9 where !isTeen: return .few
    default: return .other
    }
  }

  private func cornish(_ number: UInt64, _ hundred: UInt64) -> PluralCategory {
    if number == 0 { return .zero }
    if number == 1 { return .one }
    let isTwenty = hundred < 90
    if isTwenty, hundred % 20 == 2 || isCornishThousand(number) || number % 1_000_000 == 100_000 {
      return .two
    }
    if isTwenty, hundred % 20 == 3 { return .few }
    return isTwenty && hundred % 20 == 1 ? .many : .other
  }

  private func isCornishThousand(_ number: UInt64) -> Bool {
    let thousands = number % 100_000
    return number % 1000 == 0
      && ((1000...20_000).contains(thousands) || [40_000, 60_000, 80_000].contains(thousands))
  }
}
