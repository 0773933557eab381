import Bundles
import Posix
import Routing
import WebServer

/// Finds what a request asks for.
final class UIHandler: WebHandler {
  private let mounts: [UIMount]
  private let types = MIMETypes()

  init(_ mounts: [UIMount]) { self.mounts = mounts }

  func response(for error: WebError) -> WebResponse {
    .json(status: error.status, JSONWriter.object { $0.member("error", error.message) })
  }

  func exchange(for request: WebRequest) throws(WebError) -> any WebExchange {
    let path = request.path
    let first = path.first?.shown ?? ""
    switch first {
    case "api": return try api(request, Array(path.dropFirst()))
    case "content": return try content(request, Array(path.dropFirst()))
    default:
      guard path.count <= 1, !request.method.isUnsafe,
        let file = UIPage.response(first.isEmpty ? "index.html" : first)
      else { throw Self.notFound }
      return BufferedExchange { _ in file }
    }
  }

  static let notFound = WebError(404, "there is nothing at this address")

  private func mount(_ id: [UInt8]?) throws(WebError) -> UIMount {
    guard let index = id.flatMap({ Int($0.shown) }), mounts.indices.contains(index) else {
      throw WebError(404, "there is no such mount")
    }
    return mounts[index]
  }

  // MARK: - /content/ID/LAYER/PATH

  private func content(_ request: WebRequest, _ path: [[UInt8]]) throws(WebError) -> any WebExchange {
    guard path.count > 2 else { throw Self.notFound }
    let (mount, layer, names) = (try mount(path[0]), path[1].shown, Array(path[2...]))
    if request.method.isUnsafe { throw WebError(501, "not yet") }
    let index = Int(layer)
    guard index != nil || layer == "view" else { throw Self.notFound }
    let layers = UILayers(mount: mount, status: try mount.webStatus())
    let content = UIContent(layers: layers, path: names, types: types)
    let range = request.header("If-Range") == nil ? request.header("Range") : nil
    let response = try content.response(layer: index, range: range)
    return BufferedExchange { _ in response }
  }

  // MARK: - /api/…

  private func api(_ request: WebRequest, _ path: [[UInt8]]) throws(WebError) -> any WebExchange {
    let words = path.map(\.shown)
    if words == ["mounts"] { return BufferedExchange { [mounts] _ in .json(UIMountList.json(mounts)) } }
    guard words.first == "mounts", words.count == 3 else { throw WebError(501, "not yet") }
    let (mount, types) = (try mount(path[1]), types)
    let parameter = request.parameter("path")
    if request.method.isUnsafe { throw WebError(501, "not yet") }
    return BufferedExchange { _ throws(WebError) in
      let answers = UIAnswers(mount: mount, types: types)
      switch words[2] {
      case "status": return try answers.status()
      case "layers": return try answers.layers()
      case "tree": return try answers.tree()
      case "versions": return try answers.versions(parameter)
      default: throw WebError(501, "not yet")
      }
    }
  }
}

extension UIMount {
  func webStatus() throws(WebError) -> UIStatus { try WebError.from { () throws(Failure) in try status() } }
}

extension WebError {
  /// Calls the body; its failure is one of the mount.
  static func from<Result>(_ body: () throws(Failure) -> Result) throws(WebError) -> Result {
    do throws(Failure) { return try body() } catch { throw WebError(409, error.message) }
  }
}
