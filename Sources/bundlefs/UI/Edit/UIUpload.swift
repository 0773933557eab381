import Layers
import Posix
import WebServer

/// A file that the page sends for a name of the top layer. It appears whole or not at all.
final class UIUpload: WebExchange {
  private let edits: UIEdits
  private let path: [[UInt8]]
  private let top: TopLayer
  private let placement: UIPlacement
  /// nil at the end.
  private var pending: PendingReplacement?
  /// The bytes that it may have.
  private let room: UInt64

  /// Space that is left to others, in bytes.
  private static let reserve: UInt64 = 1 << 20

  /// - Parameter size: of the file, if the browser has said.
  init(_ edits: UIEdits, _ path: [[UInt8]], size: UInt64?) throws(WebError) {
    (self.edits, self.path) = (edits, path)
    let top = try WebError.from { () throws(Failure) in try TopLayer(of: edits.mountPoint) }
    do throws(WebError) {
      placement = try UIPlacement(top, path)
      do throws(Errno) {
        let free = try top.upper.layer.root.withDescriptor { root throws(Errno) in try root.freeBytes() }
        room = free - min(free, Self.reserve)
        if size ?? 0 > room { throw .noSpace }
        pending = try PendingReplacement(in: top.upper)
      } catch {
        throw UIPlacement.failure(error, path)
      }
    } catch {
      top.upper.close()
      throw error
    }
    self.top = top
  }

  deinit {
    pending = nil
    top.upper.close()
  }

  func receive(_ bytes: UnsafeRawBufferPointer) throws(WebError) {
    guard let pending else { return }
    do throws(Errno) {
      if UInt64(bytes.count) > room - min(room, pending.size) { throw .noSpace }
      try pending.append(bytes)
    } catch {
      throw UIPlacement.failure(error, path)
    }
  }

  func response() throws(WebError) -> WebResponse {
    guard let pending else { throw WebError(409, "the file was sent already") }
    defer { top.finish() }
    return try edits.run { remains throws(WebError) in try placement.place(pending, remains) }
  }
}
