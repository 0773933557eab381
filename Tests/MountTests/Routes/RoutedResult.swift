import FoundationEssentials
import Posix
import TestSupport

/// A result in the control file, decoded by Foundation.
struct RoutedResult: Decodable {
  /// The value bound to a key.
  enum Value: Decodable, Equatable, CustomStringConvertible {
    case text(String)
    case number(Double)
    case array([Value])

    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      if let text = try? container.decode(String.self) {
        self = .text(text)
      } else if let values = try? container.decode([Value].self) {
        self = .array(values)
      } else {
        self = .number(try container.decode(Double.self))
      }
    }

    var description: String {
      switch self {
      case .text(let text): text
      case .number(let number): "\(number)"
      case .array(let values): "\(values)"
      }
    }
  }

  var sequence: UInt64
  var time: String
  var url: String
  var outcome: String
  var notification: String?
  var userInfo: [String: Value]?
  var query: String?
  var fragment: String?
  var overlaps: [String]?
  var overlapCount: Int?
  var scheme: String?
  var port: Int?
  var listeners: Int?
  var errno: String?
  var error: String?

  /// Decodes a line.
  init(_ line: String) throws {
    do {
      self = try JSONDecoder().decode(RoutedResult.self, from: Data(line.utf8))
    } catch {
      throw TestFailure("not a result: \(line.prefix(300)): \(error)")
    }
  }

  /// The outcome with the notification's name or the errno.
  var summary: String { ([outcome] + [notification, errno].compactMap { $0 }).joined(separator: " ") }
}

/// The parsed content of the control file.
struct RoutesText {
  /// The lines of the route table.
  let routes: [String]
  /// The result lines after the table.
  let lines: [String]
  let results: [RoutedResult]

  /// Parses the content.
  /// - Throws: `TestFailure` unless it consists of routes followed by results with consecutive numbers.
  init(_ bytes: [UInt8]) throws {
    guard let text = String(validating: bytes, as: UTF8.self) else { throw TestFailure("invalid UTF-8") }
    guard text.isEmpty || text.hasSuffix("\n") else {
      throw TestFailure("incomplete last line: …\(text.suffix(100))")
    }
    let all = text.split(separator: "\n", omittingEmptySubsequences: false).dropLast().map(String.init)
    routes = Array(all.prefix { $0.hasPrefix("route ") })
    lines = Array(all.dropFirst(routes.count))
    results = try lines.map { try RoutedResult($0) }
    for (result, next) in zip(results, results.dropFirst()) where next.sequence != result.sequence + 1 {
      throw TestFailure("result \(next.sequence) follows \(result.sequence)")
    }
  }

  /// The summaries of the results in order.
  var summaries: [String] { results.map(\.summary) }
}
