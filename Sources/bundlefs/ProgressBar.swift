import Glibc
import Posix

/// A line on the terminal that tells how far something is; nothing for a while, and nothing where it would go to
/// something else than a terminal.
struct ProgressBar {
  private let title: String
  private let file: CInt
  private let isTerminal: Bool
  private var next: TimeSpec
  private var isShown = false
  private static let width = 30

  /// - Parameters:
  ///   - file: where it is shown.
  ///   - patience: milliseconds before it is.
  init(title: String, to file: CInt = STDERR_FILENO, after patience: CInt = 1000) {
    (self.title, self.file, isTerminal) = (title, file, isatty(file) == 1)
    next = .monotonic.advanced(byMilliseconds: patience)
  }

  /// Shows how much of all is done, ten times a second at most.
  mutating func show(_ done: UInt64, of all: UInt64) {
    if !isDue() { return }
    let share = all == 0 ? 1 : Double(done) / Double(all)
    let filled = Int(share * Double(Self.width))
    let bar = String(repeating: "#", count: filled) + String(repeating: ".", count: Self.width - filled)
    write("\r\(title) [\(bar)] \(Int(share * 100)) %")
  }

  /// Shows what is done where nobody knows how much there is.
  mutating func show(_ text: String) {
    if isDue() { write("\r\u{1B}[K\(title) \(text)") }
  }

  private mutating func isDue() -> Bool {
    guard isTerminal, next < TimeSpec.monotonic else { return false }
    next = TimeSpec.monotonic.advanced(byMilliseconds: 100)
    isShown = true
    return true
  }

  /// Takes the line away.
  mutating func end() {
    if isShown { write("\r\u{1B}[K") }
    isShown = false
  }

  private func write(_ text: String) {
    let bytes = Array(text.utf8)
    _ = Glibc.write(file, bytes, bytes.count)
  }
}
