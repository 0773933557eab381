import Glibc
import Layers

/// Colours for a terminal, or none.
struct Colours {
  private let isOn: Bool

  /// On where standard output is a terminal that has them and nobody objects (the variable `NO_COLOR`).
  static var ofOutput: Colours {
    let isPlain = getenv("TERM").map { strcmp($0, "dumb") == 0 } ?? true
    let isUnwanted = getenv("NO_COLOR").map { strlen($0) > 0 } ?? false
    return Colours(isOn: isatty(STDOUT_FILENO) == 1 && !isPlain && !isUnwanted)
  }

  func bold(_ text: String) -> String { painted(text, "1") }

  /// Yellow for what is overridden, green for what is added, red for what is hidden.
  func text(_ text: String, _ verdict: ComparedName.Status) -> String {
    switch verdict {
    case .unchanged: text
    case .overridden: painted(text, "33")
    case .added: painted(text, "32")
    case .hidden: painted(text, "31")
    }
  }

  private func painted(_ text: String, _ code: String) -> String {
    isOn ? "\u{1B}[\(code)m\(text)\u{1B}[m" : text
  }
}
