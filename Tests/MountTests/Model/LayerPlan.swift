import Posix
import TestSupport

/// What a file other than a directory is.
enum PlannedForm: Hashable, Sendable {
  case regular(content: [UInt8])
  case link(target: ByteString)
  case fifo
  case socket
  case character(major: UInt32, minor: UInt32)
  case block(major: UInt32, minor: UInt32)

  /// overlayfs's mark for "no such entry".
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

/// What an inode carries beside its form.
struct PlannedMetadata: Hashable, Sendable {
  var permissions: UInt32
  var owner: UInt32
  var group: UInt32
  var modified: TimeSpec
  var attributes: [ByteString: [UInt8]] = [:]
}

/// A file other than a directory; several names of its layer may stand for it.
struct PlannedFile: Sendable {
  var form: PlannedForm
  var metadata: PlannedMetadata
}

/// By what a directory is marked opaque; several marks may come together.
struct OpaqueMarks: OptionSet, Sendable {
  let rawValue: Int
  static let trusted = OpaqueMarks(rawValue: 1)
  static let user = OpaqueMarks(rawValue: 2)

  /// The attributes that make the mark.
  var attributes: [ByteString] {
    (contains(.trusted) ? ["trusted.overlay.opaque"] : [])
      + (contains(.user) ? ["user.overlay.opaque"] : [])
  }
}

/// A name in a layer's directory.
enum PlannedEntry: Sendable {
  /// One of the layer's files, by its place in the layer's list.
  case file(Int)
  case directory(PlannedDirectory)
}

/// A directory of one layer. The files `.wh.NAME` and `.wh..wh..opq` are entries like others here: what
/// they mean is the model's business.
struct PlannedDirectory: Sendable {
  var metadata: PlannedMetadata
  var marks: OpaqueMarks = []
  var entries: [ByteString: PlannedEntry] = [:]

  /// How many names in this directory and below stand for each file.
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
  var root: PlannedDirectory
  /// How many names each file has.
  var links: [Int: Int] {
    var counts: [Int: Int] = [:]
    root.countLinks(into: &counts)
    return counts
  }
}
