import Layers
import Posix

/// A directory of the merged view together with its ancestors.
struct MergedPath: Sendable {
  /// The names from the root, without symbolic links.
  private(set) var names: [[UInt8]] = []
  /// The root and the directory of each name; never empty.
  private var directories: [MergedDirectory]
  private let access: ResourceAccess

  init(rootOf stack: LayerStack, for access: ResourceAccess = .unrestricted) throws(Errno) {
    directories = [try stack.root()]
    self.access = access
  }

  var directory: MergedDirectory { directories[directories.count - 1] }

  var layer: Int { directory.top.layer }

  /// Looks up a name without following a symbolic link.
  func entry(_ name: [UInt8]) throws(Errno) -> Entry? {
    // A C string would end at the NUL.
    if name.contains(0) { return nil }
    guard try access.maySearch(directory) else { return nil }
    return try withCName(name) { name throws(Errno) in try directory.lookup(name) }
  }

  /// Lists the directory; empty if it may not be read.
  func list() throws(Errno) -> Listing {
    guard try access.mayRead(directory) else { return Listing() }
    return try directory.list()
  }

  func resolve(_ path: [[UInt8]]) throws(Errno) -> ResolvedEntry? {
    var walk = PathWalk(from: self, pending: path.reversed())
    while let name = walk.pending.popLast() {
      switch try walk.step(to: name) {
      case .next: break
      case .end(let entry): return entry
      }
    }
    return .directory(walk.path)
  }

  func directory(at path: [[UInt8]]) throws(Errno) -> MergedPath? {
    guard case .directory(let directory) = try resolve(path) else { return nil }
    return directory
  }

  mutating func descend(into directory: MergedDirectory, _ name: [UInt8]) {
    names.append(name)
    directories.append(directory)
  }

  /// Ascends to the parent; returns false at the root.
  mutating func ascend() -> Bool {
    if names.isEmpty { return false }
    names.removeLast()
    directories.removeLast()
    return true
  }
}

/// The target of a path, after symbolic links.
enum ResolvedEntry: Sendable {
  case directory(MergedPath)
  case file(MergedFile)
}

struct MergedFile: Sendable {
  let parent: MergedPath
  let name: [UInt8]
  let layer: Int
  let attributes: FileStatus

  /// Reads the content; nil if this is not a regular file or is larger than the limit.
  /// - Throws: ESTALE or ENOENT if the file was replaced or removed after the lookup.
  func content(limit: Int) throws(Errno) -> [UInt8]? {
    guard attributes.isRegular, attributes.size <= UInt64(limit) else { return nil }
    let identity = attributes.identity
    let descriptor = try withCName(name) { name throws(Errno) in
      try parent.directory.part(of: layer, with: name, identity)?.openFile(name, identity: identity)
    }
    guard let descriptor else { return nil }
    let content = try descriptor.readAll(limit: limit)
    return content.count > limit ? nil : content
  }

  /// Calls `readlinkat(2)`; nil if the link was replaced or removed after the lookup.
  func linkTarget() throws(Errno) -> [UInt8]? {
    let identity = attributes.identity
    do throws(Errno) {
      return try withCName(name) { name throws(Errno) in
        try parent.directory.part(of: layer, with: name, identity)?
          .openPath(name, identity: identity).linkTarget()
      }
    } catch {
      if error == .staleFileHandle || error == .noSuchFileOrDirectory { return nil }
      throw error
    }
  }
}
