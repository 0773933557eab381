import Posix

/// Names of layers as users give them: paths of directories and archives, or the last components of one.
enum LayerName {
  private static let slash = UInt8(ascii: "/")

  /// An absolute path without empty and `.` components; symbolic links and `..` stay.
  /// - Parameter directory: the working directory.
  static func absolute(_ given: [UInt8], from directory: [UInt8]) -> [UInt8] {
    let start = given.first == slash ? [] : components(directory[...])
    return [slash] + (start + components(given[...])).joinedPath
  }

  /// The path that is mounted for a path that a user gives: without symbolic links, if it leads anywhere.
  static func mounted(_ given: [UInt8], from directory: [UInt8]) -> [UInt8] {
    MountOptions.resolved(absolute(given, from: directory))
  }

  /// Whether a path ends with the components of a relative one, as `/home/me/mods/ui` does with `ui` and `mods/ui`.
  static func matches(_ path: [UInt8], _ given: [UInt8]) -> Bool {
    let end = components(given[...])
    return given.first != slash && !end.isEmpty && components(path[...]).suffix(end.count).elementsEqual(end)
  }

  /// The working directory; the root if it was removed.
  static var workingDirectory: [UInt8] { (try? realPath([UInt8(ascii: ".")])) ?? [slash] }

  private static func components(_ path: ArraySlice<UInt8>) -> [[UInt8]] {
    path.split(separator: slash).filter { !$0.elementsEqual(".".utf8) }.map { Array($0) }
  }
}
