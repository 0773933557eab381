import Posix

/// Why a file cannot be a layer.
public enum ArchiveError: Error, Hashable, Sendable {
  /// It cannot be opened or read.
  case unreadable(Errno)
  /// It is no regular file.
  case noFile
  /// It does not end as a zip archive does.
  case noArchive
  /// It ends like one, but its table of contents is damaged, as it says.
  case damaged(String)
  /// It has no such folder.
  case noFolder([UInt8])
  /// It has a file in place of the folder.
  case fileForFolder([UInt8])
  /// It is being written to.
  case changing

  /// The reason in words, for users.
  public var message: String {
    switch self {
    case .unreadable(let error): "\(error)"
    case .noFile: "neither a folder nor a regular file"
    case .noArchive: "not a zip archive, or its end is missing"
    case .damaged(let what): "a damaged zip archive: \(what)"
    case .noFolder(let path): "the archive has no folder '\(String(decoding: path, as: UTF8.self))'"
    case .fileForFolder(let path):
      "'\(String(decoding: path, as: UTF8.self))' is a file in the archive, not a folder"
    case .changing: "the archive is being written to"
    }
  }
}

/// Why a name of an archive is not shown.
public enum SkipReason: String, CaseIterable, Sendable {
  case empty = "no name"
  case absolute = "an absolute path"
  case parent = "'..' in the path"
  case null = "a NUL in the name"
  case tooLong = "too long"
  case tooDeep = "too many folders in the paths"
  case repeated = "the same name again further on"
  case collision = "both a file and a folder"
}

/// The names of an archive that are not shown, for one reason.
public struct SkippedNames: Sendable {
  /// Why.
  public let reason: SkipReason
  /// How many.
  public internal(set) var count = 0
  /// The first of them, as they stand in the archive.
  public internal(set) var names: [[UInt8]] = []
  /// How many of the names are kept.
  static let mostNames = 20

  mutating func add(_ name: UnsafeRawBufferPointer) {
    count += 1
    if names.count < Self.mostNames { names.append(Array(name.prefix(255))) }
  }
}
