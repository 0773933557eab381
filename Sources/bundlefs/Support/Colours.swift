import Glibc
import Layers

struct Colours {
  private let isEnabled: Bool

  static var forOutput: Colours {
    let isDumb = getenv("TERM").map { strcmp($0, "dumb") == 0 } ?? true
    let isDisabled = getenv("NO_COLOR").map { strlen($0) > 0 } ?? false
    return Colours(isEnabled: isatty(STDOUT_FILENO) == 1 && !isDumb && !isDisabled)
  }

  func bold(_ text: String) -> String { sgr(text, "1") }

  func text(_ text: String, _ status: ComparedName.Status) -> String {
    switch status {
    case .unchanged: text
    case .overridden, .merged: sgr(text, "33")
    case .added: sgr(text, "32")
    case .hidden, .collision, .excluded: sgr(text, "31")
    }
  }

  private func sgr(_ text: String, _ code: String) -> String {
    isEnabled ? "\u{1B}[\(code)m\(text)\u{1B}[m" : text
  }
}
