import Layers
import Posix

/// The option `writable`, or `writable=DIR`.
enum WritableOption: Equatable {
  case off
  case firstSubstitution
  /// A folder above all substitutions.
  case directory([UInt8])

  /// The layer that it adds on top.
  var added: [[UInt8]] { if case .directory(let path) = self { [path] } else { [] } }

  /// Why a layer that is laid at a folder cannot take the changes of the whole mount.
  static func refusal(of layer: LaidPath) -> String {
    "writable: \(layer.path.shown) is laid at '\(layer.folder.shown)', so it cannot take the changes of the whole mount; put a "
      + "folder without '@/' first, or use 'writable=DIR'"
  }

  var shown: String {
    switch self {
    case .off: ""
    case .firstSubstitution: "on"
    case .directory(let path): MountOptions.resolved(path).shown
    }
  }

  /// Makes the folder that takes the changes if it does not exist.
  /// - Parameter layers: all layers as given, top first.
  /// - Throws: if it cannot be made, or if its files would appear a second time by another layer.
  func prepare(_ layers: [LaidPath]) throws(Failure) {
    guard self != .off, let upper = layers.first else { return }
    if !upper.place.isEmpty { throw .usage(Self.refusal(of: upper)) }
    let given = upper.path
    // It may not exist yet.
    let path =
      (try? realPath(given)) == nil ? MountPoint.resolvingParent(of: given) : MountOptions.resolved(given)
    if ArchivePath(path) != nil {
      throw .failed("writable: \(given.shown) is an archive, which cannot be written to; use 'writable=DIR'")
    }
    for layer in layers.dropFirst().map(\.path) {
      let other = MountOptions.resolved(layer)
      if path.isPath(inside: other) {
        throw .failed(
          "writable: \(given.shown) lies inside \(layer.shown), where its files would appear a second time; "
            + "choose a folder outside")
      }
      if other.isPath(inside: path) {
        throw .failed("writable: \(given.shown) contains the layer \(layer.shown); choose another folder")
      }
    }
    do throws(Errno) {
      // A user who may write to it could replace all that is written through the mount.
      try Descriptor.makeDirectory(given, mode: 0o755)
    } catch {
      if error != .fileExists { throw .failed("writable: \(given.shown): \(error)") }
    }
  }
}
