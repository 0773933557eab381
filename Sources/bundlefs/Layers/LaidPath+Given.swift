import Layers
import Posix
import Routing

extension LaidPath {
  /// Reads a layer as a user gives it.
  /// - Throws: a usage error that says why it cannot be used.
  init(given: [UInt8]) throws(Failure) {
    do throws(Fault) { try self.init(name: given) } catch {
      throw .usage("the layer '\(given.shown)': \(error.reason)")
    }
  }

  /// Reads a name that was checked before.
  init(checked name: [UInt8]) { self = (try? LaidPath(name: name)) ?? LaidPath(atRoot: name) }

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
