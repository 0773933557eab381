import Layers
import Posix
import RemoteFiles

/// Names of layers as users give them: paths of directories and archives, or the last components of one.
enum LayerName {
  private static let slash = UInt8(ascii: "/")

  /// An absolute path without empty and `.` components; symbolic links and `..` stay.
  /// - Parameter directory: the working directory.
  static func absolute(_ given: [UInt8], from directory: [UInt8]) -> [UInt8] {
    if RemoteURL.isURL(given) { return given }
    let start = given.first == slash ? [] : MountPoint.split(directory[...])
    return [slash] + (start + MountPoint.split(given[...])).joinedPath
  }

  /// The layer that is mounted for the one that a user gives: without symbolic links, if its path leads anywhere.
  static func mounted(_ given: LaidPath, from directory: [UInt8]) -> LaidPath {
    LaidPath(absolute(given.path, from: directory), atFolder: given.place).resolved
  }

  /// Whether a path ends with the components of a relative one, as `/home/me/mods/ui` does with `ui` and `mods/ui`.
  static func matches(_ path: [UInt8], _ given: [UInt8]) -> Bool {
    let end = MountPoint.split(given[...])
    return given.first != slash && !end.isEmpty
      && MountPoint.split(path[...]).suffix(end.count).elementsEqual(end)
  }

  /// The working directory; the root if it was removed.
  static var workingDirectory: [UInt8] { (try? realPath([UInt8(ascii: ".")])) ?? [slash] }
}
