/// A command of a document, with what the document says that it prints.
struct DocumentedLine {
  /// The command, as a reader types it.
  let command: String
  /// The comments behind it and on the lines of their own below it.
  var comments: [String]
  /// Its line in the document.
  let number: Int
  /// The block below it, if that shows its output.
  var output: String?

  /// The lines of a block of commands.
  static func lines(of block: DocumentedBlocks.Block) -> [DocumentedLine] {
    var lines: [DocumentedLine] = []
    for (offset, text) in block.lines.enumerated() {
      let (command, comment) = split(text)
      if command.isEmpty, !lines.isEmpty {
        lines[lines.count - 1].comments += comment
      } else {
        lines.append(DocumentedLine(command: command, comments: comment, number: block.line + offset))
      }
    }
    return lines
  }

  /// A script as one command.
  static func script(_ block: DocumentedBlocks.Block) -> DocumentedLine {
    let text = block.lines.joined(separator: "\n")
    return DocumentedLine(
      command: "cat >script <<'EOF' && chmod +x script && ./script\n\(text)\nEOF", comments: [],
      number: block.line)
  }

  /// Whether what a command printed has the text, in which `…` stands for anything within a line and any run of spaces
  /// is one.
  static func matches(_ printed: String, _ text: String) -> Bool {
    let lines = printed.split(separator: "\n").map { spaced($0) }
    let wanted = text.split(separator: "\n").map { spaced($0) }
    guard lines.count >= wanted.count else { return wanted.isEmpty }
    return (0...lines.count - wanted.count).contains { start in
      zip(lines[start...], wanted).allSatisfy { contains($0, inOrder: $1.split(separator: "…")) }
    }
  }

  private static func split(_ text: String) -> (command: String, comments: [String]) {
    guard let mark = (" " + text).firstRange(of: " # ") else { return (text, []) }
    let command = String((" " + text)[..<mark.lowerBound].dropFirst())
    return (String(command.trimmingSuffix { $0 == " " }), [String((" " + text)[mark.upperBound...])])
  }

  private static func spaced(_ line: Substring) -> String {
    line.split(separator: " ").joined(separator: " ")
  }

  private static func contains(_ line: String, inOrder parts: [Substring]) -> Bool {
    var rest = Substring(line)
    for part in parts {
      guard let range = rest.firstRange(of: part) else { return false }
      rest = rest[range.upperBound...]
    }
    return true
  }
}

extension String {
  /// The text without the last characters that the predicate takes.
  fileprivate func trimmingSuffix(_ isTrimmed: (Character) -> Bool) -> Substring {
    var text = self[...]
    while let last = text.last, isTrimmed(last) { text.removeLast() }
    return text
  }
}
