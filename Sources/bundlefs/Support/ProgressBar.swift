import Glibc
import Posix

/// A progress line on the terminal. It appears after a delay, and only if the file is a terminal.
struct ProgressBar {
  private let title: String
  private let file: CInt
  private let isTerminal: Bool
  private var nextUpdate: TimeSpec
  private var isShown = false
  private static let width = 30

  /// - Parameter delay: in milliseconds.
  init(title: String, to file: CInt = STDERR_FILENO, after delay: CInt = 1000) {
    (self.title, self.file, isTerminal) = (title, file, isatty(file) == 1)
    nextUpdate = .monotonic.advanced(byMilliseconds: delay)
  }

  mutating func show(_ done: UInt64, of total: UInt64) {
    if !isDue() { return }
    let share = total == 0 ? 1 : Double(done) / Double(total)
    let filled = Int(share * Double(Self.width))
    let bar = String(repeating: "#", count: filled) + String(repeating: ".", count: Self.width - filled)
    write("\r\(title) [\(bar)] \(Int(share * 100)) %")
  }

  mutating func show(_ text: String) {
    if isDue() { write("\r\u{1B}[K\(title) \(text)") }
  }

  private mutating func isDue() -> Bool {
    guard isTerminal, nextUpdate < TimeSpec.monotonic else { return false }
    nextUpdate = TimeSpec.monotonic.advanced(byMilliseconds: 100)
    isShown = true
    return true
  }

  mutating func end() {
    if isShown { write("\r\u{1B}[K") }
    isShown = false
  }

  private func write(_ text: String) {
    let bytes = Array(text.utf8)
    _ = Glibc.write(file, bytes, bytes.count)
  }
}
