import TestSupport
import Testing

@testable import Routing

@Suite struct NumeralTests {
  private func integer(_ text: String) -> Int64? { Numeral.integer(Array(text.utf8).span) }
  private func number(_ text: String) -> Double? { Numeral.number(Array(text.utf8).span) }
  private func isNumber(_ text: String) -> Bool { Numeral.isNumber(Array(text.utf8).span) }

  /// Digits, sometimes with invalid characters.
  private func text(_ random: inout SplitMix64) -> String {
    func digits(_ range: ClosedRange<Int>) -> String {
      (0..<random.number(range)).map { _ in "\(random.number(0...9))" }.joined()
    }
    var text = (random.percent(30) ? "-" : "") + digits(0...21)
    if random.percent(50) { text += "." + digits(0...25) }
    if random.percent(5) { text.insert(random.pick(["+", "e", " ", "x", "-", "."]), at: text.startIndex) }
    return text
  }

  @Test("integers agree with the standard library")
  func integers() {
    var random = SplitMix64(seed: 1)
    var found = 0
    for _ in 0..<20_000 {
      let text = text(&random)
      let expected = text.hasPrefix("+") ? nil : Int64(text)
      #expect(integer(text) == expected, "\(text)")
      if expected != nil { found += 1 }
    }
    #expect(found > 5000)
  }

  @Test("numbers are rounded like the standard library's")
  func numbers() throws {
    var random = SplitMix64(seed: 2)
    var found = 0
    for _ in 0..<20_000 {
      let text = text(&random)
      let isValid = text.wholeMatch(of: /-?[0-9]+(\.[0-9]+)?/) != nil
      let value = number(text)
      #expect(isNumber(text) == isValid, "\(text)")
      #expect(value?.bitPattern == (isValid ? Double(text)?.bitPattern : nil), "\(text)")
      if isValid { found += 1 }
    }
    #expect(found > 5000)
  }

  @Test("a number is valid if the nearest double is finite", arguments: ["", "-"])
  func largest(sign: String) {
    let zeros = String(repeating: "0", count: 292)
    let largest = sign + "17976931348623158" + zeros
    #expect(isNumber(largest))
    #expect(number(largest)?.magnitude == .greatestFiniteMagnitude)
    let tooLarge = sign + "17976931348623159" + zeros
    #expect(!isNumber(tooLarge) && number(tooLarge) == nil)
  }
}
