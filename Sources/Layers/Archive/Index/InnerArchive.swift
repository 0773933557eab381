import Posix

extension ArchiveSource {
  /// The innermost of archives within archives; this one without paths.
  func archive(inside paths: [[[UInt8]]], encoding: NameEncoding?) throws(ArchiveError) -> ArchiveSource {
    var source = self
    for path in paths { source = try source.archive(at: path, encoding: encoding) }
    return source
  }

  /// An archive that is stored in this one as an entry. One that is compressed would have to be unpacked as a whole,
  /// and kept, before its table of contents could be read.
  private func archive(at path: [[UInt8]], encoding: NameEncoding?) throws(ArchiveError) -> ArchiveSource {
    let text = Array(path.joined(separator: [EntryName.slash]))
    let index: ArchiveIndex
    do throws(ArchiveError) {
      index = try ArchiveIndex.read(self, folder: path.dropLast(), encoding: encoding)
    } catch .noFolder { throw .noInnerArchive(text) }
    let found = path.last.flatMap { name in name.withUnsafeBytes { index.tree.find($0, in: ArchiveTree.root) }
    }
    guard let found, !index.tree[found].isFolder else { throw .noInnerArchive(text) }
    let node = index.tree[found]
    guard node.isStored, node.size == node.compressedSize else { throw .packedInnerArchive(text) }
    let start: UInt64
    do throws(Errno) { start = try index.header(of: node).contentStart(of: node) } catch {
      throw .unreadable(error)
    }
    return try ArchiveSource(inside: index.source, at: start, size: node.size)
  }
}
