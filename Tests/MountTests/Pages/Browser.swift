import FoundationEssentials
import Glibc
import Posix
import TestSupport

/// A headless Chromium with one page, whose profile is in a temporary folder. It exits with this object.
final class Browser {
  /// The browser's program, if `BUNDLEFS_BROWSER` enables the page tests.
  static let program = Binary.variable("BUNDLEFS_BROWSER")

  /// The state of a loaded page.
  struct PageState: Decodable {
    /// The navigation type: "navigate" or "reload".
    var navigation: String
    /// The page's text.
    var text: String
    /// The natural width and height of each image.
    var sizes: [[Int]]
    /// The RGB values of the screenshot at the requested points.
    var colours: [[Int]]
  }

  private let folder: TemporaryFolder
  private let driver: Child
  private let commands: CInt
  private var commandCount = 0

  /// - Parameter points: x and y, each below 200, of the pixels whose colours `PageState` reports.
  init(_ program: String, points: [(Int, Int)]) throws {
    folder = try TemporaryFolder()
    let pipe = folder / "commands"
    try pipe.makeNode(mode: FileKind.fifo.rawValue | 0o600)
    // O_RDWR does not block until a reader opens the FIFO.
    commands = try pipe.call("open") { open($0, O_RDWR | O_CLOEXEC) }
    let script = ByteString(#filePath).parent / "browser.py"
    let words: [ByteString] = ["python3", "-B", script, ByteString(program), folder.path, pipe]
    driver = try Child(Command(words + points.map { ByteString("\($0.0),\($0.1)") }))
  }

  deinit { try? end() }

  /// Loads a page.
  func load(_ url: String) throws -> PageState { try send("load \(url)") }

  /// Reloads the page.
  func reload() throws -> PageState { try send("reload") }

  /// Ends the browser.
  /// - Throws: `TestFailure` unless all its processes exit in time.
  func end() throws {
    guard commandCount >= 0 else { return }
    commandCount = -1
    close(commands)
    let outcome = try driver.wait(timeout: 60)
    if outcome.status != 0 { throw TestFailure("the browser failed: \(outcome.errorText)") }
  }

  private func send(_ command: String) throws -> PageState {
    let line = [UInt8]("\(command)\n".utf8)
    guard write(commands, line, line.count) == line.count else {
      throw DiskError("write", folder / "commands", .current)
    }
    commandCount += 1
    let hasReply = eventually(within: 90) { replies.count >= commandCount || driver.status() != nil }
    guard replies.count >= commandCount else {
      throw TestFailure("\(command): \(hasReply ? "failed" : "no reply"): \(driver.errorText)")
    }
    return try JSONDecoder().decode(PageState.self, from: Data(replies[commandCount - 1].utf8))
  }

  /// The complete lines that the driver has printed.
  private var replies: [Substring] {
    driver.outputText.split(omittingEmptySubsequences: false) { $0 == "\n" }.dropLast()
  }
}
