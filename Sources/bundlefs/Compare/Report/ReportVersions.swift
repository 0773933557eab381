import Bundles
import Layers
import Posix

/// What the layers have of an entry: size, time, and pictures as thumbnails.
final class ReportVersions {
  /// Larger pictures have no thumbnail, in bytes.
  private static let largestPicture = 64 << 10
  /// The bytes of all pictures of a page.
  private static let mostPictures = 8 << 20
  /// What browsers show as pictures, none of which can run anything.
  private static let pictures: Set<String> = [
    "image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/bmp", "image/svg+xml",
    "image/vnd.microsoft.icon", "image/x-icon",
  ]

  private let layers: UILayers
  private let labels: [String]
  private let types = MIMETypes()
  private var opened: [Int: Layer?] = [:]
  private var room = mostPictures

  init(_ layers: UILayers, _ labels: [String]) { (self.layers, self.labels) = (layers, labels) }

  private var main: Int { labels.count - 1 }

  /// The class of a layer's colour.
  func colour(_ index: Int) -> String { index == main ? "c-main" : "c\(index % ReportStyle.colours)" }

  func badge(_ index: Int) -> String {
    "<span class=\"badge \(colour(index))\" aria-hidden=\"true\">\(index == main ? "M" : "\(index + 1)")</span>"
  }

  func label(_ index: Int) -> String {
    "<span class=\"layer\">\(badge(index)) <bdi>\(HTMLText.escaped(labels[index]))</bdi></span>"
  }

  /// A list of the layers that have the entry, the topmost first.
  func list(of entry: ComparisonWalker.Entry) -> String {
    let name = entry.name
    let items = name.layers.indices.map { at in
      version(of: entry.path, in: name.layers[at], tag: Self.tag(name.status, isTop: at == 0))
    }
    return "<ol class=\"versions\" aria-label=\"Versions, topmost layer first\">\n\(items.joined())</ol>\n"
  }

  /// What a version is for the mount; nil for one that does not show.
  private static func tag(_ status: ComparedName.Status, isTop: Bool) -> String? {
    switch status {
    case .merged: "merged"
    case .hidden, .excluded: nil
    case .unchanged, .overridden, .added, .collision: isTop ? "wins" : nil
    }
  }

  private func version(of path: [[UInt8]], in index: Int, tag: String?) -> String {
    let (facts, picture) = describe(path, in: index)
    let shownTag = tag.map { " <span class=\"tag\">\($0)</span>" } ?? ""
    return """
      <li class="\(tag == nil ? "" : "wins ")\(colour(index))">\(picture)<p>\(label(index))\(shownTag) \
      <span class="facts">\(facts)</span></p></li>

      """
  }

  private func describe(_ path: [[UInt8]], in index: Int) -> (facts: String, picture: String) {
    let entry: LayerEntry
    do throws(Errno) {
      guard let layer = layer(index) else { return ("cannot be read here", "") }
      entry = try layer.entry(at: path)
    } catch {
      return (HTMLText.escaped("\(error)"), "")
    }
    switch entry {
    case .nothing: return ("changed meanwhile", "")
    case .whiteout: return ("hides the name", "")
    case .directory: return ("folder", "")
    case .file(let status, let parent):
      let time = ReportPage.time(Int(status.modified.seconds))
      guard status.isRegular else {
        return ((status.kind.map(ComparisonJSON.word) ?? "unknown") + " · " + time, "")
      }
      return ("\(HTMLText.byteSize(status.size)) · \(time)", picture(path, status, parent, index))
    }
  }

  private func layer(_ index: Int) -> Layer? {
    if let known = opened[index] { return known }
    let layer = try? layers.open(index)
    opened[index] = .some(layer)
    return layer
  }

  private func picture(
    _ path: [[UInt8]], _ status: FileStatus, _ parent: LayerDirectory, _ index: Int
  ) -> String {
    guard let name = path.last, let type = types.type(forName: name), Self.pictures.contains(type) else {
      return ""
    }
    guard status.size > 0, status.size <= UInt64(min(Self.largestPicture, room)) else {
      return "<p class=\"no-picture\">too large for a thumbnail</p>"
    }
    let content: [UInt8]
    do throws(Errno) {
      content = try parent.content(of: name, status, limit: Self.largestPicture)
    } catch {
      return "<p class=\"no-picture\">\(HTMLText.escaped("\(error)"))</p>"
    }
    room -= content.count
    let text = "Version of \(labels[index])"
    return """
      <img src="data:\(type);base64,\(HTMLText.base64(content))" alt="\(HTMLText.escaped(text))" loading="lazy">
      """
  }
}
