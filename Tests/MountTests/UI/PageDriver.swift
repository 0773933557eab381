import FoundationEssentials
import Glibc
import Posix
import TestSupport

/// A headless Chromium that uses pages as a person does. It exits with this object.
final class PageDriver {
  private let folder: TemporaryFolder
  private let process: Child
  private let commands: CInt
  private var count = 0

  init() throws {
    guard let program = Browser.program else { throw TestFailure("BUNDLEFS_BROWSER is not set") }
    folder = try TemporaryFolder()
    let pipe = folder / "commands"
    try pipe.makeNode(mode: FileKind.fifo.rawValue | 0o600)
    // O_RDWR does not block until a reader opens the FIFO.
    commands = try pipe.call("open") { open($0, O_RDWR | O_CLOEXEC) }
    let script = ByteString(#filePath).parent / "ui_browser.py"
    process = try Child(Command(["python3", "-B", script, ByteString(program), folder.path, pipe]))
  }

  deinit {
    close(commands)
    _ = try? process.wait(timeout: 60)
  }

  func load(_ url: String) throws { _ = try send("load", url) }

  /// Waits until an expression is true.
  func wait(_ expression: String) throws { _ = try send("wait", expression) }

  /// The text that an expression evaluates to.
  func text(_ expression: String) throws -> String {
    try decode("String(\(expression))")
  }

  /// The texts that an expression evaluates to.
  func texts(_ expression: String) throws -> [String] {
    try decode("[...(\(expression))].map(String)")
  }

  /// The number that an expression, or its promise, evaluates to.
  func number(_ expression: String) throws -> Double { try decode(expression) }

  func click(_ selector: String) throws { _ = try send("click", selector) }
  func press(_ keys: String...) throws { _ = try send("keys", keys) }
  func type(_ text: String) throws { _ = try send("text", text) }
  func drag(_ selector: String, to other: String) throws { _ = try send("drag", [selector, other]) }
  func resize(_ width: Int, _ height: Int) throws { _ = try send("size", [width, height]) }

  /// The roles of the controls that have no name for screen readers.
  func namelessControls() throws -> [String] {
    let line = try send("names", true)
    return try JSONDecoder().decode(Reply<[String]>.self, from: line).value ?? []
  }

  /// Switches to another page, which is made when it is new.
  func usePage(_ number: Int) throws { _ = try send("page", number) }

  /// Drops a file with this text on the element that a selector finds.
  func drop(_ text: String, named name: String, on selector: String) throws {
    let words = try [text, name, selector].map { try Self.literal($0) }
    _ = try send(
      "eval",
      """
      (() => {
        const data = new DataTransfer();
        data.items.add(new File([\(words[0])], \(words[1])));
        for (const type of ["dragenter", "dragover", "drop"]) {
          const event = new DragEvent(type, { bubbles: true, cancelable: true, dataTransfer: data });
          document.querySelector(\(words[2])).dispatchEvent(event);
        }
      })()
      """)
  }

  /// Exceptions and errors of the pages so far, without those of parts that the server answers with an error.
  func faults() throws -> [String] {
    let line = try send("faults", true)
    let faults = try JSONDecoder().decode(Reply<[String]>.self, from: line).value ?? []
    return faults.filter { !$0.hasPrefix("Failed to load resource") }
  }

  /// A text as a literal of JavaScript.
  static func literal(_ text: String) throws -> String {
    String(decoding: try JSONEncoder().encode(text), as: UTF8.self)
  }

  private struct Reply<Value: Decodable>: Decodable {
    var value: Value?
    var error: String?
  }

  private struct Failed: Decodable { var error: String? }

  private func decode<Value: Decodable>(_ expression: String) throws -> Value {
    let line = try send("eval", expression)
    guard let value = try JSONDecoder().decode(Reply<Value>.self, from: line).value else {
      throw TestFailure("\(expression): no value")
    }
    return value
  }

  /// Sends a command and waits for its reply.
  private func send(_ verb: String, _ value: some Encodable) throws -> Data {
    let line = [UInt8](try JSONEncoder().encode([verb: value])) + [UInt8(ascii: "\n")]
    guard write(commands, line, line.count) == line.count else {
      throw DiskError("write", folder / "commands", .current)
    }
    count += 1
    _ = eventually(within: 200) { replies.count >= count || process.status() != nil }
    guard replies.count >= count else { throw TestFailure("\(verb): no reply: \(process.errorText)") }
    let reply = Data(replies[count - 1].utf8)
    if let error = try JSONDecoder().decode(Failed.self, from: reply).error {
      throw TestFailure("\(verb): \(error)")
    }
    return reply
  }

  /// The complete lines that the driver has printed.
  private var replies: [Substring] {
    process.outputText.split(omittingEmptySubsequences: false) { $0 == "\n" }.dropLast()
  }
}
