import Glibc

/// The command.
@main
enum Main {
  static func main() {
    let arguments = CommandLine.bytes
    do throws(Failure) {
      let command = arguments.dropFirst().first.map { String(decoding: $0, as: UTF8.self) }
      switch command {
      case let command? where Help.commands.contains(command) && Help.isWanted(by: arguments.dropFirst(2)):
        Terminal.print(Help.text)
      case "unmount": try UnmountCommand(Array(arguments.dropFirst(2))).run()
      case "status": try StatusCommand(Array(arguments.dropFirst(2))).run()
      case "route": exit(try RouteCommand(Array(arguments.dropFirst(2)), posts: true).run())
      case "match": exit(try RouteCommand(Array(arguments.dropFirst(2)), posts: false).run())
      case "listen": try ListenCommand(Array(arguments.dropFirst(2))).run()
      case "diff": exit(try ComparisonCommand(Array(arguments.dropFirst(2)), isTree: false).run())
      case "tree": exit(try ComparisonCommand(Array(arguments.dropFirst(2)), isTree: true).run())
      case "open": exit(try OpenCommand(Array(arguments.dropFirst(2))).run())
      case "resources": try ResourcesCommand(Array(arguments.dropFirst(2))).run()
      case "sync": try ControlFileCommand.sync(Array(arguments.dropFirst(2))).run()
      case "invalidate": try ControlFileCommand.invalidate(Array(arguments.dropFirst(2))).run()
      default: try MountCommand(arguments).run()
      }
    } catch {
      Terminal.printError(error.message)
      exit(error.status)
    }
  }
}

/// Why the command ends without having done its work: one line for the user, and the exit status.
struct Failure: Error {
  /// What is wrong with which thing, and the way out.
  let message: String
  /// 1: it could not be done. 2: it was asked for in a wrong way.
  let status: CInt

  /// The work could not be done.
  static func failed(_ message: String) -> Failure { Failure(message: message, status: 1) }
  /// The arguments make no sense.
  static func usage(_ message: String) -> Failure {
    Failure(message: "\(message) (see 'bundlefs -h')", status: 2)
  }
}

/// What the user sees.
enum Terminal {
  /// Prints a line to standard output.
  static func print(_ text: String) { write(text + "\n", to: STDOUT_FILENO) }

  /// Prints a line to standard error, after the program's name.
  static func printError(_ text: String) { write("bundlefs: \(text.withoutControls)\n", to: STDERR_FILENO) }

  private static func write(_ text: String, to file: CInt) {
    var rest = ArraySlice(text.utf8)
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(file, $0.baseAddress, $0.count) }
      if count > 0 { rest = rest.dropFirst(count) } else if errno != EINTR { return }
    }
  }
}

extension CommandLine {
  /// The arguments as they were given, which need not be UTF-8.
  static var bytes: [[UInt8]] {
    (0..<Int(argc)).compactMap { place in
      guard let argument = unsafeArgv[place] else { return nil }
      return Array(UnsafeRawBufferPointer(start: argument, count: strlen(argument)))
    }
  }
}

extension [UInt8] {
  /// The bytes as words for a person.
  var shown: String { String(decoding: self, as: UTF8.self) }
}

extension String {
  /// The text with control characters as `\xNN`, a sequence for each byte: names can have them, and a terminal
  /// would obey them.
  var withoutControls: String {
    unicodeScalars.contains(where: Self.isObeyed)
      ? unicodeScalars.map { Self.isObeyed($0) ? Self.escaped($0) : String($0) }
        .joined()
      : self
  }

  /// Control characters, and those that break a line or turn its direction.
  private static func isObeyed(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x2069: true
    default: scalar.properties.generalCategory == .control
    }
  }

  private static func escaped(_ control: Unicode.Scalar) -> String {
    UTF8.encode(control).map { bytes in
      bytes.map { #"\x"# + ($0 < 16 ? "0" : "") + String($0, radix: 16, uppercase: true) }.joined()
    } ?? ""
  }
}
