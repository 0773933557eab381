import Foundation
import PropertyLists

/// Why a table of strings is not used, or only its beginning.
public struct TableError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The path of the file; that of a file in an archive is `ARCHIVE!/NAME`.
  public let path: String
  /// The number of the line, from 1; nil for a binary property list, and for a file that cannot be read.
  public let line: Int?
  /// The number of the character in its line, from 1; nil as for the line.
  public let column: Int?
  /// The reason.
  public let reason: String

  init(path: [UInt8], reason: String, position: TextPosition? = nil) {
    self.path = String(decoding: path, as: UTF8.self)
    line = position?.line
    column = position?.column
    self.reason = reason
  }

  /// `PATH:LINE:COLUMN: REASON`.
  public var description: String {
    guard let line, let column else { return "\(path): \(reason)" }
    return "\(path):\(line):\(column): \(reason)"
  }
}

extension TableError: LocalizedError {
  /// The description.
  public var errorDescription: String? { description }
}
