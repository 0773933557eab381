import Fuse

extension NodeID {
  /// Whether the node is bundlefs's own rather than a layer's: the control file, `.ciopfs`, or one of the
  /// resource directory.
  var isReserved: Bool {
    self == ControlFile.node || self == FoldingMarker.node || ResourceDirectoryNodes.contain(self)
  }
}
