import Layers
import Posix

extension Layer {
  /// The content of a regular file.
  /// - Returns: nil if there is none.
  /// - Throws: EFBIG for one of more bytes than the limit.
  func content(at path: [[UInt8]], limit: Int) throws(Errno) -> [UInt8]? {
    guard let name = path.last, case .file(let status, let parent) = try entry(at: path), status.isRegular
    else { return nil }
    return try parent.content(of: name, status, limit: limit)
  }
}

extension LayerDirectory {
  /// The content of a regular file in the directory, which still has the identity of its status.
  /// - Throws: EFBIG for one of more bytes than the limit; as `openFile`.
  func content(of name: [UInt8], _ status: FileStatus, limit: Int) throws(Errno) -> [UInt8] {
    if status.size > UInt64(limit) { throw .fileTooLarge }
    let file = try withCName(name) { name throws(Errno) in try openFile(name, identity: status.identity) }
    return try readContent(limit: limit) { buffer, offset throws(Errno) in
      try file.read(into: buffer, at: offset)
    }
  }
}
