import Posix
import RemoteFiles

/// Why an archive cannot be a layer.
public enum ArchiveError: Error, Hashable, Sendable {
  /// It cannot be opened or read.
  case unreadable(Errno)
  /// The server does not send it.
  case remote(RemoteFault)
  /// It is not a regular file, nor a folder.
  case noFile
  /// It is a folder by now.
  case folder
  /// It has no end record.
  case noArchive
  /// Its central directory is damaged.
  case damaged(String)
  /// It is an archive of another kind than zip that is damaged.
  case damagedContainer(String)
  /// It is one part of an archive that was split.
  case part
  /// It is of a kind that no layer can be.
  case unsupported(String)
  /// The folder does not exist.
  case noFolder([UInt8])
  /// The folder's path is a file.
  case fileForFolder([UInt8])
  /// The file that should be an archive inside it does not exist.
  case noInnerArchive([UInt8])
  /// The archive inside it is compressed or encrypted.
  case packedInnerArchive([UInt8])
  /// It is being written.
  case changing

  /// The message for users.
  public var message: String {
    switch self {
    case .unreadable(let error): "\(error)"
    case .remote(let fault): fault.message
    case .noFile: "neither a folder nor a regular file"
    case .folder: "a folder has taken its place; it shows after 'bundlefs layers', or after the next mount"
    case .noArchive: "not a zip archive, or its end is missing; nor an archive of another kind"
    case .damaged(let what): "a damaged zip archive: \(what)"
    case .damagedContainer(let what): "a damaged archive: \(what)"
    case .part:
      "one part of an archive that was split; join the parts first, as by 'cat NAME.001 NAME.002 > NAME'"
    case .unsupported(let what): what
    case .noFolder(let path): "the archive has no folder '\(String(decoding: path, as: UTF8.self))'"
    case .fileForFolder(let path):
      "'\(String(decoding: path, as: UTF8.self))' is a file in the archive, not a folder; if it is an archive itself, add "
        + "'!/': '!/\(String(decoding: path, as: UTF8.self))!/'"
    case .noInnerArchive(let path): "the archive has no file '\(String(decoding: path, as: UTF8.self))'"
    case .packedInnerArchive(let path):
      "'\(String(decoding: path, as: UTF8.self))' is compressed in the archive; only a stored archive can be a layer"
    case .changing: "the archive is being written to"
    }
  }
}

/// Why a name in an archive is not visible.
public enum SkipReason: String, CaseIterable, Sendable {
  case empty = "no name"
  case parent = "'..' in the path"
  case null = "a NUL in the name"
  case tooLong = "too long"
  case tooLarge = "a size that no file can have"
  case tooDeep = "too many folders in the paths"
  case repeated = "the same name again further on"
  case collision = "both a file and a folder"
  case noTarget = "a link to nothing"
  case special = "a device, FIFO or socket"
}

/// The invisible names of an archive, for one reason.
public struct SkippedNames: Sendable {
  /// The reason.
  public let reason: SkipReason
  /// The number of names.
  public internal(set) var count = 0
  /// The first of them, as in the archive.
  public internal(set) var names: [[UInt8]] = []
  static let mostNames = 20

  mutating func add(_ name: UnsafeRawBufferPointer) {
    count += 1
    if names.count < Self.mostNames { names.append(Array(name.prefix(255))) }
  }
}
