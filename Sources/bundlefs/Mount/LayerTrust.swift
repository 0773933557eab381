import Glibc
import Layers
import Posix

/// Whether users beside the one that mounts may change a layer, and with it what all users see.
struct LayerTrust {
  /// Whether users who may write to the layer that takes the changes are trusted as the mounting user.
  let trustsUpper: Bool
  /// Whether other users may enter the mount.
  private let hasOthers: Bool
  /// Whether a program that runs containers mounts, and keeps the layers out of others' reach.
  private let isOverlay: Bool
  private let user = geteuid()

  /// How a fault of the work folder is mended, for a mount.
  static let workFolderRemedy = "remove it, use 'writable=DIR', or trust its owner with '-o trust_upper'"

  init(_ plan: MountPlan) {
    let options = plan.arguments.options
    (trustsUpper, isOverlay) = (options.trustsUpper, options.overlay.isOn)
    // In the user namespace of `bundlefs run` there are no others.
    let isAlone = plan.isPrivate && user != 0
    hasOthers = options.passed.contains(Array("allow_other".utf8)) && !isAlone
  }

  /// Refuses a layer where another user could replace what root writes for other users.
  func check(upper: DirectoryLayer) throws(Failure) {
    guard user == 0, hasOthers, !trustsUpper else { return }
    let path = upper.path.shown
    let writers = try Failure.naming("writable: \(path)") { () throws(Errno) in
      try upper.root.writers(besides: user)
    }
    guard let writers else { return }
    throw .failed(
      "writable: \(path) can be written to by \(writers.shown), who could gain root's rights by what it keeps "
        + "for other users (allow_other); make it root's alone, or trust them with '-o trust_upper'")
  }

  /// A line about the layers that others may write to; nil if there are none, or only its owner may enter the mount.
  func warning(about layers: [Layer]) -> String? {
    if !hasOthers || isOverlay { return nil }
    let found = layers.compactMap { layer -> String? in
      guard let folder = layer.folder, !folder.isAbsent,
        let writers = (try? folder.ownRoot.writers(besides: user)) ?? nil
      else { return nil }
      return "\(folder.path.shown) (\(writers.shown))"
    }
    if found.isEmpty { return nil }
    return "what all users see in the mount can be changed by others who may write to a layer: "
      + found.joined(separator: ", ")
  }
}

extension DirectoryWriters {
  fileprivate var shown: String {
    switch self {
    case .everyone: "everyone"
    case .user(let id): "user \(id)"
    case .group(let id): "group \(id)"
    }
  }
}

extension WorkFolderFault {
  /// - Parameter layer: its path.
  func message(_ layer: [UInt8], remedy: String) -> String {
    let path = "\(layer.shown)/\(UpperLayer.workFolderName.shown)"
    let reason =
      switch self {
      case .notDirectory: "is not a directory"
      case .otherMount: "is on another mount"
      case .otherOwner(let user): "belongs to user \(user), who could exchange what is made in it"
      case .writableByOthers: "can be written to by others, who could exchange what is made in it"
      }
    return "the work folder \(path) \(reason); \(remedy)"
  }
}
