/// The commands, flags and options in the output of `bundlefs --help`.
struct HelpWords {
  var commands: [String] = []
  var flags: [String] = []
  /// Mount options; those that take a value end with `=`.
  var options: [String] = []

  init(_ text: String) {
    var isAmongOptions = false
    for line in text.split(separator: "\n") {
      if line == "Options:" { isAmongOptions = true }
      commands += Self.command(in: line)
      flags += line.split { !($0.isLetter || $0 == "-") }.filter(Self.isFlag).map { String($0) }
      if isAmongOptions { options += Self.options(in: line) }
    }
    flags = Set(flags).sorted()
    options = Set(options).sorted()
  }

  private static func isFlag(_ word: Substring) -> Bool {
    word.first == "-" && word.drop { $0 == "-" }.first?.isLetter == true
      && word.prefix { $0 == "-" }.count <= 2
      && (word.hasPrefix("--") || word.count == 2)
  }

  /// The command in `usage: bundlefs NAME …` and the lines below it.
  private static func command(in line: Substring) -> [String] {
    let words = line.split(separator: " ").drop { $0 == "usage:" }
    guard words.count > 1, words.first == "bundlefs", let name = words.dropFirst().first,
      name.allSatisfy({ $0.isLowercase })
    else { return [] }
    return [String(name)]
  }

  /// The options in a slightly indented line: `name` or `name=VALUE`, separated by commas and followed by a description,
  /// whose further lines are indented more.
  private static func options(in line: Substring) -> [String] {
    guard (1...8).contains(line.prefix { $0 == " " }.count) else { return [] }
    var words: [String] = []
    for word in line.split(separator: " ") {
      let name = word.prefix { $0.isLowercase || $0 == "_" }
      let rest = word.dropFirst(name.count)
      guard !name.isEmpty, rest.isEmpty || rest == "," || rest.first == "=" else { break }
      words.append(String(name) + (rest.first == "=" ? "=" : ""))
      if word.last != "," { break }
    }
    return words
  }
}

/// The words in a manual page's source.
struct ManualWords {
  var words: Set<String>
  /// The words in lines after `.TP`.
  var headings: Set<String>

  init(_ source: String) {
    let lines = source.split(separator: "\n")
    words = []
    headings = []
    for (index, line) in lines.enumerated() {
      let plain = line.replacing("\\-", with: "-")
      let found = plain.split { !($0.isLetter || "-_=".contains($0)) }.flatMap { word in
        // `cache=coherent` documents `cache=`.
        [String(word), word.firstIndex(of: "=").map { String(word[...$0]) } ?? String(word)]
      }
      words.formUnion(found)
      if index > 0, lines[index - 1] == ".TP" { headings.formUnion(found) }
    }
    // Long flags are documented with their commands.
    headings.formUnion(words.filter { $0.hasPrefix("--") })
  }
}

/// The word table in an installed completion script.
struct CompletionWords {
  var commands: Set<String> = []
  var flags: Set<String> = []
  var options: Set<String> = []

  init(_ text: String) {
    for line in text.split(separator: "\n") {
      // A quotation mark precedes the first line.
      let fields = line.split(separator: "|", omittingEmptySubsequences: false)
      guard fields.count == 4, let kind = fields[0].split(separator: "'").last else { continue }
      switch kind {
      case "command": commands.insert(String(fields[1]))
      case "flag": flags.insert(String(fields[1].split(separator: " ").last ?? ""))
      case "option": options.insert(String(fields[1]))
      default: break
      }
    }
  }
}
