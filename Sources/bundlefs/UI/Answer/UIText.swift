import Layers
import Posix
import PropertyLists
import Routing
import WebServer

/// A property list of a layer as text, whatever its format.
struct UIText {
  /// Larger files are not read, and longer texts are cut, in bytes.
  private static let (largest, longest) = (16 << 20, 1 << 20)

  let layers: UILayers
  let path: [[UInt8]]

  /// - Throws: 422 for what is no property list.
  func response(layer index: Int) throws(WebError) -> WebResponse {
    let layer = try layers.open(index)
    let content: [UInt8]?
    do throws(Errno) { content = try layer.content(at: path, limit: Self.largest) } catch {
      throw WebError(409, "\(shown(path)): \(error)")
    }
    guard let content else { throw WebError(404, "\(shown(path)): no such file in the layer") }
    let text = try text(of: content)
    return .json(
      JSONWriter.object { json in
        json.member("format", text.format)
        json.member("text", String(decoding: text.utf8.prefix(Self.longest), as: UTF8.self))
        json.member("cut", text.utf8.count > Self.longest)
      })
  }

  private func text(of content: [UInt8]) throws(WebError) -> (format: String, utf8: [UInt8]) {
    let format = PropertyList.Format(of: content)
    if case .binary = format {
      let list = PropertyList(content)
      if let error = list.error { throw WebError(422, "\(shown(path)): no property list: \(error)") }
      return ("binary", PropertyListXML.text(of: list.dictionary, limit: Self.longest + 1))
    }
    guard let text = PropertyListText(content), !text.isMalformed else {
      throw WebError(422, "\(shown(path)): no text of a known encoding")
    }
    return (format == .xml ? "xml" : "openStep", text.utf8)
  }
}
