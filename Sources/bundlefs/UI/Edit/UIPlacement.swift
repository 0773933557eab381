import Glibc
import Layers
import Posix
import WebServer

/// Gives a new file its place in the top layer.
struct UIPlacement {
  private let top: TopLayer
  private let path: [[UInt8]]
  private let name: [UInt8]

  /// - Throws: 409 for a path that belongs to the mount itself.
  init(_ top: TopLayer, _ path: [[UInt8]]) throws(WebError) {
    guard let name = path.last else { throw WebError(400, "the request needs the path of a file") }
    (self.top, self.path, self.name) = (top, path, name)
    let given = top.mountPoint.path + [UInt8(ascii: "/")] + path.joinedPath
    _ = try WebError.from { () throws(Failure) in try top.components(of: [given], "replace") }
  }

  /// - Parameter label: nil for the usual one.
  func place(_ pending: PendingReplacement, label: String? = nil) throws(WebError) -> UIEdit {
    let status = try shownFile()
    let (folder, made) = try UINewEntries(top).makeFolder(Array(path.dropLast()))
    do throws(Errno) {
      let taken = try withCName(name) { name throws(Errno) in
        try pending.place(as: name, in: folder, Self.attributes(like: status))
      }
      let step = UIStep(
        parent: Array(path.dropLast()), name: name, taken: taken,
        left: try UIStep.Trace(at: path, in: top.upper))
      let usual = "\(status == nil ? "Added" : "Replaced") \(name.shown)"
      return UIEdit(
        label: label ?? usual, content: .entries(made + [step], layer: top.upper.layer.path))
    } catch {
      UIStepReversal(top).rollBack(made)
      throw Self.failure(error, path)
    }
  }

  /// What the mount shows at the path until now; nil for nothing.
  private func shownFile() throws(WebError) -> FileStatus? {
    let view = try WebError.from { () throws(Failure) in try top.view() }
    do throws(Errno) {
      switch try Layer.directory(view).entry(at: path) {
      case .file(let status, _): return status
      case .nothing, .whiteout: return nil
      case .directory: throw Errno.isDirectory
      }
    } catch {
      throw Self.failure(error, path)
    }
  }

  private static func attributes(like status: FileStatus?) -> AttributeChanges {
    var changes = AttributeChanges()
    changes.permissions = (status.map { $0.isRegular ? $0.mode & 0o777 : 0o644 }) ?? 0o644
    if geteuid() == 0, let status { (changes.owner, changes.group) = (status.owner, status.group) }
    return changes
  }

  static func failure(_ error: Errno, _ path: [[UInt8]]) -> WebError {
    if error.meansFullDisk {
      return WebError(507, "\(shown(path)): not enough free space in the top layer; nothing was changed")
    }
    return WebError(409, "\(shown(path)): \(error)")
  }
}
