import Glibc
import Posix
import Routing

enum Terminal {
  static func print(_ text: String) { write(text + "\n", to: STDOUT_FILENO) }

  /// Prints lines, each with its newline.
  static func printLines(_ text: String) { if !text.isEmpty { write(text, to: STDOUT_FILENO) } }

  static func printError(_ text: String) { write("bundlefs: \(text.escapingControls)\n", to: STDERR_FILENO) }

  /// Asks a question on standard input, which should be a terminal.
  /// - Returns: whether the answer is yes.
  static func confirm(_ question: String) -> Bool {
    write(question.escapingControls + " [y/N] ", to: STDERR_FILENO)
    let answer = readLine(strippingNewline: true)?.lowercased()
    return answer == "y" || answer == "yes"
  }

  private static func write(_ text: String, to file: CInt) {
    var rest = ArraySlice(text.utf8)
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(file, $0.baseAddress, $0.count) }
      if count > 0 { rest = rest.dropFirst(count) } else if errno != EINTR { return lost(.current, file) }
    }
  }

  /// A command whose output is lost has failed.
  private static func lost(_ error: Errno, _ file: CInt) {
    if file != STDOUT_FILENO { return }
    printError("standard output: \(error)")
    exit(1)
  }
}

extension [UInt8] {
  /// The bytes for display; invalid UTF-8 is replaced.
  var shown: String { String(decoding: self, as: UTF8.self) }
}
