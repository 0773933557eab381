import Foundation
import Posix

extension URL {
  /// The absolute path of a file URL.
  /// - Throws: `URLError.badURL` for any other URL.
  func filePath() throws(URLError) -> [UInt8] {
    guard isFileURL else { throw URLError(.badURL, self, "not a file URL") }
    let bytes = absoluteURL.withUnsafeFileSystemRepresentation { $0.map { [UInt8](bytesOf: $0) } }
    guard let bytes, bytes.first == UInt8(ascii: "/") else {
      throw URLError(.badURL, self, "the URL has no path")
    }
    return bytes
  }
}
