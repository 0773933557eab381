import FoundationEssentials
import Glibc
import Posix
import TestSupport

/// A headless Chromium with one page. It runs, with its profile, in a folder of its own, and ends with this.
final class Browser {
  /// The program, when the page tests are asked for.
  static let program = Binary.variable("BUNDLEFS_BROWSER")

  /// What is seen of a page.
  struct Sight: Decodable {
    /// How the browser came to it: "navigate" or "reload".
    var navigation: String
    /// The page's text.
    var text: String
    /// The natural width and height of each image.
    var sizes: [[Int]]
    /// Red, green and blue of the screenshot at each of the points.
    var colours: [[Int]]
  }

  private let folder: TemporaryFolder
  private let driver: Child
  private let commands: CInt
  private var told = 0

  /// - Parameter points: the places in screenshots whose colours are told, x and y, each below 200.
  init(_ program: String, points: [(Int, Int)]) throws {
    folder = try TemporaryFolder()
    let pipe = folder / "commands"
    try pipe.makeNode(mode: FileKind.fifo.rawValue | 0o600)
    // Open both ways: that waits for no reader.
    commands = try pipe.call("open") { open($0, O_RDWR | O_CLOEXEC) }
    let script = ByteString(#filePath).parent / "browser.py"
    let words: [ByteString] = ["python3", "-B", script, ByteString(program), folder.path, pipe]
    driver = try Child(Command(words + points.map { ByteString("\($0.0),\($0.1)") }))
  }

  deinit { try? end() }

  /// Loads a page.
  func load(_ url: String) throws -> Sight { try tell("load \(url)") }

  /// Loads the page again, as the browser's button does.
  func reload() throws -> Sight { try tell("reload") }

  /// Ends the browser.
  /// - Throws: unless all its processes end in time.
  func end() throws {
    guard told >= 0 else { return }
    told = -1
    close(commands)
    let outcome = try driver.wait(timeout: 60)
    if outcome.status != 0 { throw TestFailure("the browser failed: \(outcome.errorText)") }
  }

  private func tell(_ command: String) throws -> Sight {
    let line = [UInt8]("\(command)\n".utf8)
    guard write(commands, line, line.count) == line.count else {
      throw DiskError("write", folder / "commands", .current)
    }
    told += 1
    let isAnswered = eventually(within: 90) { answers.count >= told || driver.status() != nil }
    guard answers.count >= told else {
      throw TestFailure("\(command): \(isAnswered ? "failed" : "no answer"): \(driver.errorText)")
    }
    return try JSONDecoder().decode(Sight.self, from: Data(answers[told - 1].utf8))
  }

  /// The lines that the driver has completed.
  private var answers: [Substring] {
    driver.outputText.split(omittingEmptySubsequences: false) { $0 == "\n" }.dropLast()
  }
}
