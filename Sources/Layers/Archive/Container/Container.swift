#if Archives
import Posix

/// An archive that libarchive reads, of any kind in `ContainerFormat`.
///
/// Entries that are in the file as they are, are read there. Others can only be decoded in the order of the archive: see
/// `ContainerWalk`.
final class Container: Sendable {
  let format: ContainerFormat
  let walk: ContainerWalk
  /// Whether another tar archive follows, which is not shown.
  let hasAppended: Bool
  private let targets: [UInt8]

  // The values of `ArchiveNode.method` beside 0, and what `offset` is with each. With 0 it is where the content is.

  /// Decoded in the order of the archive: the number of the entry.
  static let sequential: UInt16 = 0xFF
  /// The target of a symbolic link: where it is in `targets`.
  static let linkTarget: UInt16 = 0xFE
  /// A file with holes in a plain tar archive: where its header is.
  static let sparse: UInt16 = 0xFD

  init(_ listing: ContainerListing, of source: ArchiveSource, _ tree: ArchiveTree) {
    format = listing.format
    targets = listing.targets
    hasAppended = listing.hasAppended
    walk = ContainerWalk(source, format, nodes: Self.nodes(tree, listing))
  }

  /// By number of an entry, its node in the tree, or 0.
  private static func nodes(_ tree: ArchiveTree, _ listing: ContainerListing) -> [UInt32] {
    guard listing.hasSequentialContent else { return [] }
    var nodes = [UInt32](repeating: 0, count: listing.records.count)
    for node in 1..<UInt32(max(1, tree.count)) where tree[node].isSequential {
      nodes[Int(tree[node].offset)] = node
    }
    return nodes
  }

  /// - Throws: ENOMEM; EIO.
  func decoder(of entry: CompressedEntry) throws(Errno) -> EntryDecoder {
    switch entry.node.method {
    case Self.sequential: try SequentialDecoder(entry, walk)
    case Self.linkTarget: try LinkTargetDecoder(entry, target(of: entry.node))
    default: try InPlaceDecoder(entry, format)
    }
  }

  private func target(of node: ArchiveNode) throws(Errno) -> [UInt8] {
    guard node.offset <= targets.count, node.size <= UInt64(targets.count) - node.offset else {
      throw .ioError
    }
    return Array(targets[Int(node.offset)..<Int(node.offset + node.size)])
  }
}
#endif
