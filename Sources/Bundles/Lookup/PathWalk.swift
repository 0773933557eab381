import Layers
import Posix

/// Path resolution in the merged view, confined to the mount: absolute links, and links that ascend above the
/// root, do not resolve. Each step looks up one name in a merged directory, so nothing outside the layers is
/// accessed.
struct PathWalk {
  enum Step {
    case next
    /// The result of the walk; nil if the path does not exist.
    case end(ResolvedEntry?)
  }

  private(set) var path: MergedPath
  /// The remaining names, the next one last.
  var pending: [[UInt8]]
  private var links = 0

  /// The kernel's limit (path_resolution(7)).
  private static let maxLinks = 40
  private static let slash = UInt8(ascii: "/")

  init(from path: MergedPath, pending: [[UInt8]]) {
    self.path = path
    self.pending = pending
  }

  mutating func step(to name: [UInt8]) throws(Errno) -> Step {
    if name.elementsEqual(".".utf8) { return .next }
    if name.elementsEqual("..".utf8) { return path.ascend() ? .next : .end(nil) }
    switch try path.entry(name) {
    case nil: return .end(nil)
    case .directory(let directory, _):
      path.descend(into: directory, name)
      return .next
    case .file(let layer, let attributes):
      let file = MergedFile(parent: path, name: name, layer: layer, attributes: attributes)
      if attributes.kind == .symbolicLink { return try follow(file) }
      return .end(pending.isEmpty ? .file(file) : nil)
    }
  }

  private mutating func follow(_ link: MergedFile) throws(Errno) -> Step {
    links += 1
    guard links <= Self.maxLinks, let target = try link.linkTarget(), target.first != Self.slash else {
      return .end(nil)
    }
    // A trailing slash requires a directory, as does a final dot.
    if target.last == Self.slash { pending.append([UInt8(ascii: ".")]) }
    pending += target.split(separator: Self.slash).reversed().map { Array($0) }
    return .next
  }
}
