import Posix
import TestSupport

@testable import Layers

/// Three layers in a temporary folder, whose tables of strings are merged.
struct TableLayers {
  private let folder: TemporaryFolder
  /// The topmost first.
  let paths: [ByteString]

  init() throws {
    let folder = try TemporaryFolder()
    self.folder = folder
    paths = try ["top", "middle", "main"].map { try folder.folder($0) }
  }

  /// The root of a new view.
  func root(
    merging: Bool = true, foldsNames: Bool = false, device: String? = nil
  ) throws -> MergedDirectory {
    let stack = LayerStack(
      layers: try paths.enumerated().map { index, path in
        try DirectoryLayer(path: path.bytes, index: index, covered: nil, foldsNames: foldsNames)
      })
    if merging { stack.mergeTables(forDevice: device) }
    return try stack.root()
  }

  /// The attributes of a file in a directory of the view.
  static func status(_ name: [UInt8], in directory: MergedDirectory) throws -> FileStatus {
    let found = try withCName(name) { name throws(Errno) in try directory.lookup(name) }
    guard case .file(_, let status) = found else {
      throw TestFailure("\(ByteString(name)): \(String(describing: found))")
    }
    return status
  }
}
