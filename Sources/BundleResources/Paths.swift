import Foundation
import FoundationNetworking
import Glibc
import Posix

extension URL {
  /// The path of a file URL, absolute, as system calls take it.
  /// - Throws: `URLError.badURL` for any other URL.
  func filePath() throws(URLError) -> [UInt8] {
    guard isFileURL else { throw URLError(.badURL, self, "a file URL is wanted") }
    let bytes = absoluteURL.withUnsafeFileSystemRepresentation { path in
      path.map { Array(UnsafeRawBufferPointer(start: $0, count: strlen($0))) }
    }
    guard let bytes, bytes.first == UInt8(ascii: "/") else {
      throw URLError(.badURL, self, "the URL has no path")
    }
    return bytes
  }
}

/// The absolute path without symbolic links of what a path leads to.
func realPath(_ path: [UInt8]) throws(Errno) -> [UInt8] {
  try withCName(path) { name throws(Errno) in
    guard let real = realpath(name, nil) else { throw .current }
    defer { free(real) }
    return Array(UnsafeRawBufferPointer(start: real, count: strlen(real)))
  }
}
