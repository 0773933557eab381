import Glibc
import Posix

/// A line on the terminal that tells how far something is; nothing before a second, and nothing where standard
/// error is no terminal.
struct ProgressBar {
  private let title: String
  private let isTerminal = isatty(STDERR_FILENO) == 1
  private var next = Moment.sinceStart.later(milliseconds: 1000)
  private var isShown = false
  private static let width = 30

  init(title: String) { self.title = title }

  /// Shows how much of all is done, ten times a second at most.
  mutating func show(_ done: UInt64, of all: UInt64) {
    guard isTerminal, next < Moment.sinceStart else { return }
    next = Moment.sinceStart.later(milliseconds: 100)
    isShown = true
    let share = all == 0 ? 1 : Double(done) / Double(all)
    let filled = Int(share * Double(Self.width))
    let bar = String(repeating: "#", count: filled) + String(repeating: ".", count: Self.width - filled)
    write("\r\(title) [\(bar)] \(Int(share * 100)) %")
  }

  /// Takes the line away.
  mutating func end() {
    if isShown { write("\r\u{1B}[K") }
    isShown = false
  }

  private func write(_ text: String) {
    let bytes = Array(text.utf8)
    _ = Glibc.write(STDERR_FILENO, bytes, bytes.count)
  }
}
