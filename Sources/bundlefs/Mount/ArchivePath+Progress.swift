import Layers

extension ArchivePath {
  /// Opens the layer, and shows the progress on a terminal.
  /// - Parameters:
  ///   - index: in the stack.
  ///   - id: as of `ArchiveLayer.init`.
  func open(
    index: Int, id: LayerID? = nil, _ encoding: NameEncoding?, _ contents: ContentCache,
    foldsNames: Bool = false, hidden: HiddenNames? = nil, at place: [[UInt8]] = []
  ) throws(ArchiveError) -> ArchiveLayer {
    var bar = ProgressBar(title: "reading \(archive.shown)")
    defer { bar.end() }
    return try open(
      index: index, id: id, encoding, contents, foldsNames: foldsNames, hidden: hidden, at: place,
      progress: { bar.show($0, of: $1) })
  }
}
