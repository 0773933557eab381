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
    case "favicon.ico":
      return BufferedExchange { _ in WebResponse(status: 204, type: "image/png", .bytes([])) }
    case "content": return try content(request, Array(path.dropFirst()))
    default:
      guard path.count <= 1, !request.method.isUnsafe,
        let file = UIPage.response(first)
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
    if request.method.isUnsafe {
      guard request.method == .put, layer == "top" else { throw Self.notFound }
      return try UIUpload(mount.edits, names, size: request.header("Content-Length").flatMap { UInt64($0) })
    }
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
    if words == ["mounts"], !request.method.isUnsafe {
      return BufferedExchange { [mounts] _ in .json(UIMountList.json(mounts)) }
    }
    guard words.first == "mounts", words.count == 3 else { throw Self.notFound }
    let mount = try mount(path[1])
    switch request.method {
    case .get, .head: return try question(words[2], request, mount)
    case .post:
      return BufferedExchange(limit: UIBody.limit) { body throws(WebError) in
        try UIOrders(mount: mount, body: UIBody(body)).response(words[2])
      }
    case .put: throw Self.notFound
    }
  }

  private func question(
    _ word: String, _ request: WebRequest, _ mount: UIMount
  ) throws(WebError) -> any WebExchange {
    let answers = UIAnswers(mount: mount, types: types)
    let path = request.parameter("path")
    let isHead = request.method == .head
    let counts = request.parameter("count")?.elementsEqual("no".utf8) != true
    return BufferedExchange { _ throws(WebError) in
      switch word {
      case "status": return try answers.status()
      case "layers": return try answers.layers(counts: counts)
      case "tree": return try answers.tree(path)
      case "versions": return try answers.versions(path)
      case "events" where !isHead:
        return WebResponse(type: "text/event-stream", .stream(try mount.feed.open(mount), count: nil))
      case "strings": return try answers.strings(path)
      case "edits": return mount.edits.list()
      case "profiles": return try UIProfiles(mount: mount).list()
      case "text": return try answers.text(path, layer: request.parameter("layer"))
      case "results": return try UIResults(mount: mount).response()
      default: throw Self.notFound
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
