import Posix
import TestSupport

/// The type and content of a file other than a directory.
enum PlannedForm: Hashable, Sendable {
  case regular(content: [UInt8])
  case link(target: ByteString)
  case fifo
  case socket
  case character(major: UInt32, minor: UInt32)
  case block(major: UInt32, minor: UInt32)

  /// Whether this is an overlayfs whiteout.
  var isOverlayWhiteout: Bool { self == .character(major: 0, minor: 0) }

  var kind: FileKind {
    switch self {
    case .regular: .regular
    case .link: .symbolicLink
    case .fifo: .fifo
    case .socket: .socket
    case .character: .characterDevice
    case .block: .blockDevice
    }
  }

  /// st_size.
  var size: Int64 {
    switch self {
    case .regular(let content): Int64(content.count)
    case .link(let target): Int64(target.count)
    default: 0
    }
  }

  /// st_rdev.
  var rdev: UInt64 {
    switch self {
    case .character(let major, let minor), .block(let major, let minor):
      deviceNumber(major: major, minor: minor)
    default: 0
    }
  }
}

/// The metadata of an inode.
struct PlannedMetadata: Hashable, Sendable {
  var permissions: UInt32
  var owner: UInt32
  var group: UInt32
  var modified: TimeSpec
  var attributes: [ByteString: [UInt8]] = [:]
}

/// A file other than a directory; several names in its layer may refer to it.
struct PlannedFile: Sendable {
  var form: PlannedForm
  var metadata: PlannedMetadata
}

/// The extended attributes that mark a directory opaque.
struct OpaqueMarkers: OptionSet, Sendable {
  let rawValue: Int
  static let trusted = OpaqueMarkers(rawValue: 1)
  static let user = OpaqueMarkers(rawValue: 2)

  /// The names of the extended attributes.
  var attributes: [ByteString] {
    (contains(.trusted) ? ["trusted.overlay.opaque"] : [])
      + (contains(.user) ? ["user.overlay.opaque"] : [])
  }
}

/// An entry of a layer's directory.
enum PlannedEntry: Sendable {
  /// A file, by its index in the layer.
  case file(Int)
  case directory(PlannedDirectory)
}

/// A directory of one layer. The files `.wh.NAME` and `.wh..wh..opq` are ordinary entries here; the model interprets
/// them.
struct PlannedDirectory: Sendable {
  var metadata: PlannedMetadata
  var opaqueMarkers: OpaqueMarkers = []
  var entries: [ByteString: PlannedEntry] = [:]
  /// Whether it only leads to a layer that is laid at a folder.
  var isAboveLayer = false

  /// Counts the names of each file in this directory and below.
  func countLinks(into counts: inout [Int: Int]) {
    for entry in entries.values {
      switch entry {
      case .file(let index): counts[index, default: 0] += 1
      case .directory(let directory): directory.countLinks(into: &counts)
      }
    }
  }
}

/// One layer.
struct PlannedLayer: Sendable {
  var files: [PlannedFile] = []
  /// Whether case does not count in the stack's names.
  var foldsNames = false
  var root: PlannedDirectory
  /// The link count of each file.
  var links: [Int: Int] {
    var counts: [Int: Int] = [:]
    root.countLinks(into: &counts)
    return counts
  }
}
