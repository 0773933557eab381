import Bundles
import Layers
import Posix
import WebServer

/// The content of a file of a layer, or of the view.
struct UIContent {
  let layers: UILayers
  let path: [[UInt8]]
  let types: MIMETypes

  /// - Parameters:
  ///   - layer: nil for the view.
  ///   - range: the header `Range`.
  func response(layer: Int?, range: String?) throws(WebError) -> WebResponse {
    let file = try open(layer)
    do throws(Errno) {
      let size = try file.attributes().size
      let headers = [
        (name: "Content-Security-Policy", value: WebResponse.sandboxPolicy),
        (name: "Accept-Ranges", value: "bytes"),
      ]
      let type = UIFileType(types, path.last ?? []).sent
      var response = WebResponse(type: type, headers: headers, .bytes([]))
      switch ByteRange(range, size: size) {
      case .whole: response.body = Self.body(file, 0, size)
      case .part(let first, let count):
        response.status = 206
        response.headers.append(
          (name: "Content-Range", value: "bytes \(first)-\(first + count - 1)/\(size)"))
        response.body = Self.body(file, first, count)
      case .outside:
        response.status = 416
        response.headers.append((name: "Content-Range", value: "bytes */\(size)"))
      }
      return response
    } catch {
      throw failure(error)
    }
  }

  private static func body(_ file: LayerFile, _ first: UInt64, _ count: UInt64) -> WebResponse.Body {
    count == 0 ? .bytes([]) : .stream(FileStream(file, from: first, count: count), count: count)
  }

  private func open(_ index: Int?) throws(WebError) -> LayerFile {
    let layer: Layer
    if let index {
      layer = try layers.open(index)
    } else {
      do throws(Errno) { layer = try layers.view() } catch { throw failure(error) }
    }
    do throws(Errno) {
      guard let name = path.last, case .file(let status, let parent) = try layer.entry(at: path) else {
        throw Errno.noSuchFileOrDirectory
      }
      guard status.isRegular else { throw Errno.invalidArgument }
      return try withCName(name) { name throws(Errno) in
        try parent.openFile(name, identity: status.identity)
      }
    } catch {
      throw failure(error)
    }
  }

  private func failure(_ error: Errno) -> WebError {
    let name = shown(path)
    switch error {
    case .noSuchFileOrDirectory, .notDirectory, .staleFileHandle:
      return WebError(404, "\(name): no such file in the layer")
    case .invalidArgument: return WebError(404, "\(name): not a regular file")
    case .permissionDenied, .notPermitted: return WebError(403, "\(name): \(error)")
    default: return WebError(500, "\(name): \(error)")
    }
  }
}

/// A part of a file.
private final class FileStream: WebStream {
  private let file: LayerFile
  private let first: UInt64
  private let count: UInt64

  init(_ file: LayerFile, from first: UInt64, count: UInt64) {
    (self.file, self.first, self.count) = (file, first, count)
  }

  /// A file that has become shorter fails, so that a part is not taken for all.
  func read(into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64) -> Int? {
    guard offset < count, let start = Int64(exactly: first + offset) else { return 0 }
    let size = Int(min(UInt64(buffer.count), count - offset))
    let part = UnsafeMutableRawBufferPointer(rebasing: buffer[..<size])
    guard let read = try? file.read(into: part, at: start), read > 0 else { return nil }
    return read
  }
}
