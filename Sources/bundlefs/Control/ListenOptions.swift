import Routing

/// The arguments of `bundlefs listen`.
struct ListenOptions {
  let mountPoint: [UInt8]
  private let names: [[UInt8]]
  private(set) var since: UInt64?
  /// After how many results it ends.
  private(set) var count: Int?
  /// After how many seconds it ends.
  private(set) var timeout: Double?
  /// The program to run for each result, and its arguments.
  private(set) var command: [[UInt8]] = []

  init(_ arguments: [[UInt8]]) throws(Failure) {
    var operands: [[UInt8]] = []
    var rest = arguments[...]
    while let argument = rest.popFirst() {
      switch String(decoding: argument, as: UTF8.self) {
      case "--since":
        since = try Self.value("--since", &rest, "the sequence number of a result") { UInt64($0) }
      case "--count":
        count = try Self.value("--count", &rest, "a positive number") {
          Int($0).flatMap { $0 > 0 ? $0 : nil }
        }
      case "--timeout":
        timeout = try Self.value("--timeout", &rest, "a number of seconds") {
          Double($0).flatMap { $0 >= 0 && $0 <= 1e9 ? $0 : nil }
        }
      case "--exec":
        command = Array(rest)
        rest = []
        if command.isEmpty { throw .usage("'--exec' needs a command") }
      case "--":
        operands += rest
        rest = []
      case let option where option.hasPrefix("-") && option.count > 1:
        throw .unknownOption(option, of: "listen")
      default: operands.append(argument)
      }
    }
    guard let mountPoint = operands.first else { throw .usage("'listen' needs a MOUNTPOINT") }
    self.mountPoint = mountPoint
    names = Array(operands.dropFirst())
  }

  func selects(_ result: ResultLine) -> Bool { names.isEmpty || result.isPosted(as: names) }

  private static func value<Value>(
    _ name: String, _ rest: inout ArraySlice<[UInt8]>, _ expected: String, _ parse: (String) -> Value?
  ) throws(Failure) -> Value {
    guard let value = rest.popFirst().flatMap({ parse($0.shown) }) else {
      throw .usage("'\(name)' needs \(expected)")
    }
    return value
  }
}
