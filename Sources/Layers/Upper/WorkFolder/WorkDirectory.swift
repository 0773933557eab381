import Posix

/// The directory in which the work folder of a layer is made, if that is not the layer's root: like `workdir` of overlayfs, a
/// directory of the same mount.
///
/// It is reached from the layer's root, so that a private clone of the mount has both.
public struct WorkDirectory: Sendable {
  /// Its path from the layer's root.
  let path: [UInt8]
  /// The path from the layer's root to the nearest directory that contains both.
  let ancestor: [UInt8]
  /// The path of the layer's root from there.
  let layer: [UInt8]
  /// What its own path leads to, which a clone of the mount may not have; nil if that is known.
  let identity: FileIdentity?

  /// - Parameters:
  ///   - directory: an absolute path without symbolic links.
  ///   - layer: that of the layer.
  ///   - identity: of the directory.
  /// - Returns: nil if one of them contains the other.
  public init?(_ directory: [UInt8], for layer: [UInt8], identity: FileIdentity? = nil) {
    self.identity = identity
    let slash = UInt8(ascii: "/")
    let (own, other) = (directory.split(separator: slash), layer.split(separator: slash))
    let common = zip(own, other).prefix { $0 == $1 }.count
    guard common < own.count, common < other.count else { return nil }
    let up = [ArraySlice](repeating: Array("..".utf8)[...], count: other.count - common)
    ancestor = Array(up.joined(separator: [slash]))
    path = Array((up + own[common...]).joined(separator: [slash]))
    self.layer = Array(other[common...].joined(separator: [slash]))
  }
}
