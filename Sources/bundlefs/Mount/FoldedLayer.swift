import Layers

/// A layer on a file system that folds names, in a mount that does not: `Data` in another layer would not be merged with
/// its `data`, although programs that know the layer take them for one.
struct FoldedLayer {
  private let options: MountOptions

  init(_ options: MountOptions) { self.options = options }

  /// Why a layer cannot be laid at a folder of the mount; nil if it can. Where case does not count, the entries of a layer
  /// below were seen in rare cases after a folder above had become opaque.
  func fault(at place: [[UInt8]]) -> String? {
    guard options.foldsNames, !place.isEmpty else { return nil }
    return "'case=insensitive' and a layer at a folder ('@/') cannot be combined; leave one of them out"
  }

  /// Why a layer cannot be part of the mount; nil if it can.
  func fault(of layer: DirectoryLayer) -> String? {
    // With `case=sensitive` the user takes care of the spellings.
    if options.foldsNames || options.names.contains("case") || !layer.isFolded { return nil }
    return "it lies on a file system where names that differ in case are one: add 'case=insensitive', or add "
      + "'case=sensitive' if programs spell all names as they are listed"
  }
}
