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

  /// - Parameters:
  ///   - remains: get what could not be changed back if it fails.
  ///   - label: nil for the usual one.
  func place(
    _ pending: PendingReplacement, _ remains: UIRemains, label: String? = nil
  ) throws(WebError) -> UIEdit {
    let status = try shownFile()
    var steps: [UIStep] = []
    do throws(WebError) {
      let folder = try UINewEntries(top).makeFolder(Array(path.dropLast()), &steps)
      do throws(Errno) { steps.append(try step(pending, folder, status)) } catch {
        throw Self.failure(error, path)
      }
    } catch {
      UIStepReversal(top, remains).rollBack(steps)
      throw error
    }
    let usual = "\(status == nil ? "Added" : "Replaced") \(name.shown)"
    return UIEdit(label: label ?? usual, content: .entries(steps, layer: top.upper.layer.path))
  }

  private func step(
    _ pending: PendingReplacement, _ folder: LayerDirectory, _ status: FileStatus?
  ) throws(Errno) -> UIStep {
    let place = try top.place(of: name, in: folder, at: Array(path.dropLast()))
    return try withCName(place.name) { name throws(Errno) in
      let former = try top.upper.trace(of: name, in: place.folder)
      let placed = try pending.place(as: name, in: place.folder, Self.attributes(like: status))
      return UIStep(
        parent: place.parent, name: place.name, taken: placed.taken, former: former, left: placed.trace)
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

extension TopLayer {
  /// The directory and the spelling in which the layer has an entry of a name, or else is to get it: that of listings.
  /// - Parameters:
  ///   - folder: where it is to get it.
  ///   - parent: the path of the folder in the mount.
  func place(
    of name: [UInt8], in folder: LayerDirectory, at parent: [[UInt8]]
  ) throws(Errno) -> (parent: [[UInt8]], folder: LayerDirectory, name: [UInt8]) {
    if !foldsNames { return (parent, folder, name) }
    let directories = try upper.directories(at: parent, outside: device)
    for (path, directory) in directories {
      if let own = try directory.spelling(of: name) { return (path, directory, own) }
    }
    let path = directories.first { $0.directory.identity == folder.identity }?.path ?? parent
    let view: DirectoryLayer
    do throws(Failure) { view = try self.view() } catch { throw .ioError }
    let shown = try view.root.spelled(parent + [name]).last
    return (path, folder, shown ?? name)
  }
}
