import Foundation
import StringTables
import TestSupport
import Testing

/// Formats as in `printf(3)`.
@Suite struct FormatTests {
  @Test(
    "integers as the C library writes them",
    arguments: [
      "%d", "%5d", "%-5d|", "%05d", "%+d", "% d", "%.3d", "%8.3d", "%x", "%#x", "%X", "%o", "%#o", "%u",
    ])
  func integers(format: String) {
    for value in [0, 1, -1, 42, 123_456, Int64.max, .min] {
      let wide = format.replacingOccurrences(of: "([diuxXo])", with: "ll$1", options: .regularExpression)
      let expected = String(format: wide, value)
      for length in ["", "h", "l", "ll", "q", "z"] {
        let format = wide.replacingOccurrences(of: "ll", with: length)
        #expect(StringTable.text(of: format, arguments: [.integer(value)]) == expected, "\(format) \(value)")
      }
    }
  }

  @Test(
    "numbers as the C library writes them",
    arguments: ["%f", "%.2f", "%10.3e", "%g", "%G", "%-12.1f|", "%+.0f", "%999.999f"])
  func numbers(format: String) {
    for value in [0, 1.5, -2.25, 1e300, Double.greatestFiniteMagnitude, .infinity] {
      #expect(StringTable.text(of: format, arguments: [.number(value)]) == String(format: format, value))
    }
  }

  @Test(
    "texts and other types",
    arguments: [
      ("%@ %@", [.text("a"), .integer(1)], "a 1"), ("%2$@ %1$@", [.text("a"), .text("b")], "b a"),
      ("%s", [.text("é")], "é"),
      ("%d", [.text("x")], "x"), ("%f", [.integer(2)], "2.000000"), ("%5@|", [.text("é")], "    é|"),
      ("%-3@|", [.text("a")], "a  |"),
      ("%.1@", [.text("éa")], "é"), ("%c", [.integer(65)], "A"), ("%c", [.integer(-1)], "-1"),
      ("%n %p", [.integer(1)], "%n %p"),
      ("%*d", [.integer(1)], "%*d"), ("%1000d", [.integer(1)], "%1000d"), ("%0$d", [.integer(1)], "%0$d"),
      ("%99999999999999999999$d", [.integer(1)], "%99999999999999999999$d"), ("%", [], "%"), ("%%", [], "%"),
      ("%d", [.unsigned(.max)], "18446744073709551615"), ("%u", [.integer(-1)], "18446744073709551615"),
      ("%'d", [.integer(1000)], "1000"),
    ] as [(String, [FormatArgument], String)])
  func types(format: String, arguments: [FormatArgument], expected: String) {
    #expect(StringTable.text(of: format, arguments: arguments) == expected)
  }

  @Test("random formats never trap", arguments: Seeds.chosen(4))
  func random(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    let parts = [
      "%", "1", "9", "$", "#", "@", "d", "f", "s", "n", "l", "-", ".", "*", "a", "0", "é", "%#@a@", "%1$",
      "'",
    ]
    let arguments: [FormatArgument] = [.integer(.min), .number(.nan), .text("é"), .unsigned(.max)]
    for _ in 0..<5000 {
      let format = (0..<random.number(0...8)).map { _ in random.pick(parts) }.joined()
      let text = StringTable.text(of: format, arguments: arguments)
      #expect(text.utf8.count <= 1100 * (format.utf8.count + 1), "\(format)")
    }
  }
}
