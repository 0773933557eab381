import CLibrary
import Posix

/// What one layer has at a path, without merging.
public enum LayerEntry: Sendable {
  case nothing
  /// The layer hides the name in the layers below.
  case whiteout
  case directory(FileStatus)
  /// - Parameter directory: contains it.
  case file(FileStatus, in: LayerDirectory)
}

extension Layer {
  /// What this layer alone has at a path. No symbolic link is followed.
  public func entry(at path: [[UInt8]]) throws(Errno) -> LayerEntry {
    guard let name = path.last else { return .directory(try root.attributes()) }
    let found: MergedDirectory
    do throws(Errno) { found = try directory(at: Array(path.dropLast())) } catch {
      if error == .noSuchFileOrDirectory { return .nothing }
      throw error
    }
    return try withCName(name) { name throws(Errno) in
      if WhiteoutMarker.isMarker(name) { return .nothing }
      let parent = found.part(of: found.top.layer, with: name, nil) ?? found.top
      switch try parent.find(name) {
      case .directory(_, let status): return .directory(status)
      case .file(let status): return .file(status, in: parent)
      case .whiteout: return .whiteout
      case .nothing: return try parent.hasWhiteoutMarker(name, length: strlen(name)) ? .whiteout : .nothing
      }
    }
  }
}
