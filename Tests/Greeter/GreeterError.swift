import Foundation

/// What a greeting can fail for.
enum GreeterError: Error, LocalizedError {
  /// The arguments make no sense; the message says why.
  case usage(String)
  /// No layer has a localization of that name.
  case noLocalization(String, available: [String])
  /// The route does not match a URL.
  case noRoute(URL)
  /// A greeting's number is out of range.
  case tooOften(Int, limits: ClosedRange<Int>)
  /// A file cannot be written.
  case notWritten(URL, any Error)

  /// A sentence for users.
  var errorDescription: String? {
    switch self {
    case .usage(let reason): "\(reason)\n\(Arguments.usage)"
    case .noLocalization(let name, let available):
      "no localization '\(name)'; there are: \(available.joined(separator: ", "))"
    case .noRoute(let url): "\(url): this is not greeter://greet/NAME/TIMES"
    case .tooOften(let times, let limits):
      "\(times) greetings; from \(limits.lowerBound) to \(limits.upperBound) are possible"
    case .notWritten(let file, let error):
      "\(file.path(percentEncoded: false)) cannot be written: \(error.localizedDescription)"
    }
  }

  /// 2 for wrong usage, otherwise 1.
  var exitStatus: Int32 { if case .usage = self { 2 } else { 1 } }
}
