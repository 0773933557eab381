import Glibc
import Posix
import Routing

/// Runs a program for a result: `bundlefs listen --exec`. No shell sees what a URL contains.
struct EventCommand {
  private let words: [[UInt8]]

  init(_ words: [[UInt8]]) { self.words = words }

  /// Waits until the program exits, whatever its status.
  /// - Throws: if it cannot be started.
  func run(_ result: ResultLine) throws(Failure) {
    let name = words[0].shown
    let input = try Failure.naming(name) { () throws(Errno) in
      let input = try Descriptor.memory(name: "result")
      try input.writeInOneCall(result.bytes + [UInt8(ascii: "\n")])
      _ = lseek(input.rawValue, 0, SEEK_SET)
      return input
    }
    let failure = ChildProcess.run(words, adding: Self.environment(of: result), input: input)
    if let failure { throw .failed("\(name): \(failure)") }
  }

  /// The variables of a result: what it is, and the value of each key.
  static func environment(of result: ResultLine) -> [[UInt8]] {
    guard let json = JSONValue(result.bytes) else { return [] }
    var variables: [(String, String?)] = [
      ("SEQUENCE", "\(result.sequence)"), ("URL", json["url"]?.string), ("OUTCOME", json["outcome"]?.string),
      ("NOTIFICATION", json["notification"]?.string),
    ]
    if case .object(let values) = json["userInfo"] {
      for (key, value) in values { variables.append(("VALUE_\(key)", text(of: value))) }
    }
    return variables.compactMap { name, value in
      // A variable cannot hold NUL.
      value.flatMap { $0.utf8.contains(0) ? nil : Array("BUNDLEFS_\(name)=\($0)".utf8) }
    }
  }

  /// A string as it is, another value as JSON.
  private static func text(of value: JSONValue) -> String? {
    guard let bound = RouteValue(value) else { return nil }
    if case .text(let text) = bound { return text }
    var json = JSONWriter()
    json.value(bound)
    return json.text
  }
}
