import Posix

/// A first argument that is neither a command nor the path of a MAIN, but looks like a command.
enum UnknownCommand {
  /// Commands of other programs, and what they are called here.
  private static let synonyms = ["umount": "unmount", "ls": "list", "help": "--help", "version": "--version"]

  /// - Parameters:
  ///   - arguments: all of them; the first is the program.
  ///   - exists: whether there is a file.
  /// - Returns: nil if the first argument may be a MAIN.
  static func failure(
    _ arguments: [[UInt8]],
    exists: ([UInt8]) -> Bool = { (try? Descriptor.open($0, [.pathOnly, .noFollow])) != nil }
  ) -> Failure? {
    guard let word = arguments.dropFirst().first, !isHelper(arguments[0]), !word.contains(UInt8(ascii: "/")),
      !exists(word)
    else { return nil }
    if word.elementsEqual("mount".utf8) { return explanation(Array(arguments.dropFirst(2))) }
    guard let command = synonyms[word.shown] ?? Suggestion.nearest(to: word.shown, among: Help.commands)
    else {
      return nil
    }
    return .usage(
      "'\(word.shown)' is neither a command nor a directory\(Suggestion.question("bundlefs \(command)"))")
  }

  private static func isHelper(_ program: [UInt8]) -> Bool {
    program.split(separator: UInt8(ascii: "/")).last?.starts(with: "mount.".utf8) ?? false
  }

  /// How to mount, with the arguments that were given.
  private static func explanation(_ rest: [[UInt8]]) -> Failure {
    let words =
      rest.isEmpty
      ? "MAIN MOUNTPOINT [-o OPTION[,OPTION...]]" : rest.map(\.shellQuoted).joined(separator: " ")
    return .usage("there is no command 'mount'; to mount, write: bundlefs \(words)")
  }
}

extension [UInt8] {
  /// The bytes as one word of a shell, for display.
  var shellQuoted: String {
    let plain = allSatisfy { byte in
      byte >= 0x80 || UnicodeScalar(byte).properties.isAlphabetic
        || "0123456789_-./:=,+@%".utf8.contains(byte)
    }
    return plain && !isEmpty ? shown : "'\(shown.replacing("'", with: #"'\''"#))'"
  }
}
