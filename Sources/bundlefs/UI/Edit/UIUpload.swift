import Glibc
import Layers
import Posix
import WebServer

/// A file that the page sends for a name of the top layer. It appears whole or not at all.
final class UIUpload: WebExchange {
  private let edits: UIEdits
  private let path: [[UInt8]]
  private let name: [UInt8]
  private let top: TopLayer
  private var pending: PendingReplacement?
  private let room: UInt64

  /// Space that is left to others, in bytes.
  private static let reserve: UInt64 = 1 << 20

  /// - Parameter size: of the file, if the browser has said.
  init(_ edits: UIEdits, _ path: [[UInt8]], size: UInt64?) throws(WebError) {
    guard let name = path.last else { throw WebError(400, "the request needs the path of a file") }
    (self.edits, self.path, self.name) = (edits, path, name)
    let mountPoint = edits.mountPoint
    let top = try WebError.from { () throws(Failure) in
      let top = try TopLayer(of: mountPoint)
      _ = try top.components(of: [mountPoint.path + [UInt8(ascii: "/")] + path.joinedPath], "replace")
      return top
    }
    do throws(Errno) {
      let free = try top.upper.layer.statvfs()
      let bytes = UInt64(free.f_bavail).multipliedReportingOverflow(by: UInt64(free.f_frsize))
      let room = bytes.overflow ? .max : bytes.partialValue
      if size ?? 0 > room.subtractingReserve(Self.reserve) { throw .noSpace }
      self.room = room.subtractingReserve(Self.reserve)
      pending = try PendingReplacement(in: top.upper)
    } catch {
      top.upper.close()
      throw Self.failure(error, path)
    }
    self.top = top
  }

  deinit {
    pending = nil
    top.upper.close()
  }

  func receive(_ bytes: UnsafeRawBufferPointer) throws(WebError) {
    do throws(Errno) {
      guard let pending else { throw .ioError }
      if UInt64(bytes.count) > room - min(room, pending.size) { throw .noSpace }
      try pending.append(bytes)
    } catch {
      throw Self.failure(error, path)
    }
  }

  func response() throws(WebError) -> WebResponse {
    try edits.run { _ throws(WebError) in
      defer { top.finish() }
      let (status, label) = try shownFile()
      let (folder, made) = try UINewEntries(top).makeFolder(Array(path.dropLast()))
      do throws(Errno) {
        let taken = try withCName(name) { name throws(Errno) in
          guard let pending else { throw .ioError }
          return try pending.place(as: name, in: folder, Self.attributes(like: status))
        }
        let step = UIStep(
          parent: Array(path.dropLast()), name: name, taken: taken,
          left: try UIStep.Trace(at: path, in: top.upper))
        return UIEdit(label: label, content: .entries(made + [step], layer: top.upper.layer.path))
      } catch {
        _ = try? UIStepReversal(top).reverse(made)
        throw Self.failure(error, path)
      }
    }
  }

  /// What the mount shows at the path until now.
  private func shownFile() throws(WebError) -> (FileStatus?, label: String) {
    do throws(Failure) {
      let view = try top.view()
      do throws(Errno) {
        switch try Layer.directory(view).entry(at: path) {
        case .file(let status, _): return (status, "Replaced \(name.shown)")
        case .nothing, .whiteout: return (nil, "Added \(name.shown)")
        case .directory: throw Errno.isDirectory
        }
      } catch {
        throw .failed("\(shown(path)): \(error)")
      }
    } catch {
      throw WebError(409, error.message)
    }
  }

  private static func attributes(like status: FileStatus?) -> AttributeChanges {
    var changes = AttributeChanges()
    changes.permissions = (status.map { $0.isRegular ? $0.mode & 0o777 : 0o644 }) ?? 0o644
    if geteuid() == 0, let status { (changes.owner, changes.group) = (status.owner, status.group) }
    return changes
  }

  private static func failure(_ error: Errno, _ path: [[UInt8]]) -> WebError {
    if error.meansFullDisk {
      return WebError(507, "\(shown(path)): not enough free space in the top layer; nothing was changed")
    }
    return WebError(409, "\(shown(path)): \(error)")
  }
}

extension UInt64 {
  fileprivate func subtractingReserve(_ reserve: UInt64) -> UInt64 { self > reserve ? self - reserve : 0 }
}
