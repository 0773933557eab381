import Routing

/// The text of a profile: a mount option in each line, as after `-o`. Blank lines and those that begin with `#` are ignored.
/// As in a list of options, a backslash escapes `,`, `:` and `\`; commas need none here. Before the end of a line, it makes
/// that a part of the option.
struct ProfileText {
  private static let (newline, carriageReturn) = (UInt8(ascii: "\n"), UInt8(ascii: "\r"))
  private static let (backslash, comma) = (UInt8(ascii: "\\"), UInt8(ascii: ","))

  private var rest: ArraySlice<UInt8>
  private var number = 1

  init(_ text: [UInt8]) { rest = text[...] }

  /// The next option as `-o` takes it, and the number of its line.
  mutating func next() -> (line: Int, option: [UInt8])? {
    while !rest.isEmpty {
      let line = number
      rest = rest.drop { " \t".utf8.contains($0) }
      if rest.first == UInt8(ascii: "#") {
        skipLine()
      } else if let option = option() {
        return (line, option)
      }
    }
    return nil
  }

  private mutating func skipLine() {
    while let byte = rest.popFirst(), byte != Self.newline {}
    number += 1
  }

  /// - Returns: nil for a blank line.
  private mutating func option() -> [UInt8]? {
    var (option, isEscaped, endsByReturn) = ([UInt8](), false, false)
    while let byte = rest.popFirst() {
      if byte == Self.newline { number += 1 }
      if byte == Self.newline, !isEscaped { break }
      if isEscaped, byte == Self.newline || byte == Self.carriageReturn { option.removeLast() }
      if byte == Self.comma, !isEscaped { option.append(Self.backslash) }
      option.append(byte)
      endsByReturn = byte == Self.carriageReturn && !isEscaped
      isEscaped = byte == Self.backslash && !isEscaped
    }
    // An editor of another system has written it.
    if endsByReturn { option.removeLast() }
    return option.isEmpty ? nil : option
  }

  /// The lines of options.
  /// - Returns: nil if they do not read back as they are: a line end after a backslash that a pattern has.
  static func text(of options: [[UInt8]]) -> [UInt8]? {
    let text = options.flatMap { option in
      option.flatMap { $0 == newline || $0 == carriageReturn ? [backslash, $0] : [$0] } + [newline]
    }
    var (reader, read) = (ProfileText(text), [[UInt8]]())
    while let (_, option) = reader.next() { read.append(option) }
    return read == options ? text : nil
  }

  /// A line that is ignored.
  static func comment(_ text: String) -> [UInt8] { Array("# \(text.escapingControls)\n".utf8) }
}
