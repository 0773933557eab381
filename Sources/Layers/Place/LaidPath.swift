/// A layer as users name it: the path of a directory or an archive, and the folder of the view at which it is laid, if it is not
/// laid at the root: `PATH@/FOLDER`.
///
/// Only `@/` after a name separates, so that `icon@2x` and `/mnt/@/home` are paths. Where a path itself has it, as `me@/mods`, it is
/// written `me\@/mods`. What exists decides nothing: another user could make it.
public struct LaidPath: Hashable, Sendable {
  /// Why a name cannot be used.
  public enum Fault: Error {
    /// Nothing but slashes and dots follows `@/`.
    case noFolder
    /// It has two separators.
    case several
    /// A `..`, a name of more than 255 bytes, NUL, or the name of a whiteout.
    case unusable([UInt8])
    /// A name that ends with `@` before another, which would be taken for a separator.
    case separatorInFolder([UInt8])
    /// The folder's path is longer than the kernel takes: 4,095 bytes.
    case tooLong
    /// Its path ends with a backslash, which would be taken for an escape.
    case backslash
  }

  /// The path in the file system, or as of `ArchivePath`.
  public let path: [UInt8]
  /// The names of the folders from the root of the view; empty for the root.
  public let place: [[UInt8]]

  private static let (at, slash, backslash) = (UInt8(ascii: "@"), UInt8(ascii: "/"), UInt8(ascii: "\\"))
  private static let separator: [UInt8] = [at, slash]
  /// `PATH_MAX`, with NUL.
  private static let mostBytes = 4096

  /// - Parameter place: the path of a folder in the view.
  public init(_ path: [UInt8], at place: [UInt8] = []) throws(Fault) {
    self.path = path
    self.place = try Self.names(of: place)
    if !place.isEmpty, self.place.isEmpty { throw .noFolder }
    if !self.place.isEmpty, path.last == Self.backslash { throw .backslash }
  }

  /// A path laid at the root.
  public init(atRoot path: [UInt8]) { (self.path, place) = (path, []) }

  /// A path laid at a folder whose names have been checked.
  public init(_ path: [UInt8], atFolder place: [[UInt8]]) { (self.path, self.place) = (path, place) }

  /// Reads a name as users give it.
  public init(name: [UInt8]) throws(Fault) {
    var path: [UInt8] = []
    var folder: Int?
    for (index, byte) in name.enumerated() {
      let isMark = Self.isMark(name, index)
      if isMark, path.last == Self.backslash {
        path.removeLast()
      } else if isMark {
        if folder != nil { throw .several }
        folder = index + 1
      }
      if folder == nil { path.append(byte) }
    }
    if let folder {
      try self.init(path, at: Array(name[folder...]))
    } else {
      self.init(atRoot: path)
    }
  }

  /// Whether `@/` is at an index, after another byte than a slash.
  private static func isMark(_ name: [UInt8], _ index: Int) -> Bool {
    index > 0 && name[index] == at && name[index - 1] != slash && name[index...].starts(with: separator)
  }

  private static func names(of place: [UInt8]) throws(Fault) -> [[UInt8]] {
    if place.count >= mostBytes { throw .tooLong }
    let names = place.split(separator: slash).map { Array($0) }.filter { !$0.elementsEqual(".".utf8) }
    if let name = names.dropLast().first(where: { $0.count > 1 && $0.last == at }) {
      throw .separatorInFolder(name)
    }
    for name in names {
      let isUnusable = name.count > 255 || name.contains(0) || name.elementsEqual("..".utf8)
      if isUnusable || WhiteoutMarker.isMarker(name) { throw .unusable(name) }
    }
    return names
  }

  /// The name that `init(name:)` reads: that of a path at the root is the path, unless it has `@/`.
  public var name: [UInt8] {
    var name: [UInt8] = []
    for index in path.indices {
      if Self.isMark(path, index) { name.append(Self.backslash) }
      name.append(path[index])
    }
    return name + suffix
  }

  /// As `name`, without escapes.
  public var shown: [UInt8] { path + suffix }

  /// The path of the folder in the view, without a slash in front.
  public var folder: [UInt8] { Array(place.joined(separator: [Self.slash])) }

  private var suffix: [UInt8] { place.isEmpty ? [] : Self.separator + folder }
}
