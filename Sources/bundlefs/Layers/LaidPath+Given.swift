import Layers
import Posix
import RemoteFiles
import Routing

extension LaidPath {
  /// Reads a layer as a user gives it: a path, or a URL. One with `file` becomes the path that it names.
  /// - Throws: a usage error that says why it cannot be used.
  init(given: [UInt8]) throws(Failure) {
    do throws(Fault) { try self.init(name: given) } catch {
      throw .usage("the layer '\(RemoteURL.redacted(given).shown)': \(error.reason)")
    }
    if RemoteURL.isURL(path), RemoteURL(Array(path[..<RemoteURL.end(of: path)])) == nil {
      throw .usage("the layer '\(RemoteURL.redacted(path).shown)' is not a URL that can be read")
    }
    if let local = RemoteURL.localPath(of: path) { self = LaidPath(local, atFolder: place) }
  }

  /// Reads a name that was checked before.
  init(checked name: [UInt8]) { self = (try? LaidPath(name: name)) ?? LaidPath(atRoot: name) }

  /// For messages, the status and the table of mounts.
  var redacted: [UInt8] { LaidPath(RemoteURL.redacted(path), atFolder: place).shown }

  /// With the real path.
  var resolved: LaidPath { LaidPath(MountOptions.resolved(path), atFolder: place) }
}

extension LaidPath.Fault {
  /// For users.
  var reason: String {
    switch self {
    case .noFolder:
      "'@/' must be followed by a folder of the mount, as in 'mod.zip@/Data'; leave out the slash after a name with '@'"
    case .several: "it has '@/' twice; write '\\@/' for one that is part of the path"
    case .unusable(let name): "no folder of the mount can be named '\(name.shown)'"
    case .separatorInFolder(let name):
      "a layer cannot be laid below the folder '\(name.shown)', whose name ends with '@'"
    case .tooLong: "the path of the folder has 4,096 bytes or more"
    case .backslash: "a path that ends with a backslash cannot be laid at a folder"
    }
  }
}
