extension Failure {
  /// The failure of a command that does not have an option: names the option that may be meant, or what is wrong with its
  /// value.
  static func unknownOption(_ option: String, of command: String) -> Failure {
    let known = Help.options(of: command)
    let name = option.prefix { $0 != "=" }
    let message =
      if name.count < option.count, let takesValue = known[String(name)] {
        takesValue
          ? "'\(name)' takes its value as a word of its own: '\(name) \(option.dropFirst(name.count + 1))'"
          : "'\(name)' takes no value"
      } else {
        "'\(command)' has no option '\(option)'"
          + Suggestion.question(Suggestion.nearest(to: String(name), among: known.keys))
      }
    return Failure(message: "\(message) (see 'bundlefs \(command) --help')", status: 2)
  }
}

extension Help {
  /// The long options that the help of a command has, and whether each takes a value.
  static func options(of command: String) -> [String: Bool] {
    var options: [String: Bool] = [:]
    for match in text(for: command).matches(of: #/(--[a-z][a-z-]*)( [A-Z])?/#) {
      options[String(match.1)] = match.2 != nil || options[String(match.1)] == true
    }
    return options
  }
}
