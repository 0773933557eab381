import Layers
import Posix

/// A directory of the merged view, with those above it up to the root.
struct MergedPath: Sendable {
  /// The path from the root, without symbolic links.
  private(set) var path: [[UInt8]] = []
  /// The root and the directories of the path; never empty.
  private var directories: [MergedDirectory]
  private let access: ResourceAccess

  /// The root of the merged view.
  init(rootOf stack: LayerStack, for access: ResourceAccess = .unrestricted) throws(Errno) {
    directories = [try stack.root()]
    self.access = access
  }

  /// The directory itself.
  var directory: MergedDirectory { directories[directories.count - 1] }

  /// The highest layer that takes part in it, 0 on top.
  var layer: Int { directory.top.layer }

  /// What the directory has under a name, by itself: links are not followed.
  func entry(_ name: [UInt8]) throws(Errno) -> Entry? {
    // The calls would take a name up to a NUL for the whole.
    if name.contains(0) { return nil }
    guard try access.mayPass(directory) else { return nil }
    return try withCName(name) { name throws(Errno) in try directory.lookup(name) }
  }

  /// The directory's names; none where it may not be listed.
  func list() throws(Errno) -> Listing {
    guard try access.mayList(directory) else { return Listing() }
    return try directory.list()
  }

  /// What a path leads to from here; nil where it leads nowhere.
  func reach(_ path: [[UInt8]]) throws(Errno) -> Reached? {
    var walk = Walk(place: self, pending: path.reversed())
    while let name = walk.pending.popLast() {
      switch try walk.step(to: name) {
      case .onward: break
      case .end(let reached): return reached
      }
    }
    return .directory(walk.place)
  }

  /// The directory that a path leads to from here; nil where there is none.
  func directory(at path: [[UInt8]]) throws(Errno) -> MergedPath? {
    guard case .directory(let place) = try reach(path) else { return nil }
    return place
  }

  fileprivate mutating func enter(_ directory: MergedDirectory, _ name: [UInt8]) {
    path.append(name)
    directories.append(directory)
  }

  /// Goes up; answers false at the root.
  fileprivate mutating func leave() -> Bool {
    if path.isEmpty { return false }
    path.removeLast()
    directories.removeLast()
    return true
  }
}

/// What a path of the merged view leads to.
enum Reached: Sendable {
  case directory(MergedPath)
  case file(MergedFile)
}

/// A non-directory of the merged view.
struct MergedFile: Sendable {
  /// The directory that has it.
  let place: MergedPath
  /// Its name there.
  let name: [UInt8]
  /// The layer that it comes from, 0 on top.
  let layer: Int
  let attributes: FileStatus

  /// Its content; nil if it is not a regular file, or larger than the limit.
  /// - Throws: ESTALE or ENOENT when it was replaced or removed since it was looked up.
  func content(limit: Int) throws(Errno) -> [UInt8]? {
    guard attributes.isRegular, attributes.size <= UInt64(limit) else { return nil }
    guard let part = place.directory.part(of: layer) else { return nil }
    let identity = attributes.identity
    let descriptor = try withCName(name) { name throws(Errno) in
      try part.openFile(name, identity: identity)
    }
    let content = try descriptor.readAll(limit: limit)
    return content.count > limit ? nil : content
  }

  /// Where the symbolic link points.
  fileprivate func linkTarget() throws(Errno) -> [UInt8]? {
    guard let part = place.directory.part(of: layer) else { return nil }
    let identity = attributes.identity
    do throws(Errno) {
      return try withCName(name) { name throws(Errno) in
        try part.openPath(name, identity: identity).linkTarget()
      }
    } catch {
      // It was removed or replaced since it was looked up.
      if error == .staleFileHandle || error == .noSuchFileOrDirectory { return nil }
      throw error
    }
  }
}

/// A way through the merged view, as a program inside the mount would go it, symbolic links included, but
/// never out of the mount: an absolute link and one that climbs above the root lead nowhere. Nothing outside
/// the layers is touched, since every step is a lookup of one name in a merged directory.
private struct Walk {
  enum Step {
    case onward
    case end(Reached?)
  }

  var place: MergedPath
  /// The names still to go, the next one last.
  var pending: [[UInt8]]
  private var links = 0

  /// As many links as the kernel follows in one path (path_resolution(7)).
  private static let mostLinks = 40
  private static let slash = UInt8(ascii: "/")

  init(place: MergedPath, pending: [[UInt8]]) {
    self.place = place
    self.pending = pending
  }

  mutating func step(to name: [UInt8]) throws(Errno) -> Step {
    if name.elementsEqual(".".utf8) { return .onward }
    if name.elementsEqual("..".utf8) { return place.leave() ? .onward : .end(nil) }
    switch try place.entry(name) {
    case nil: return .end(nil)
    case .directory(let directory, _):
      place.enter(directory, name)
      return .onward
    case .file(let layer, let attributes):
      let file = MergedFile(place: place, name: name, layer: layer, attributes: attributes)
      if attributes.kind == .symbolicLink { return try follow(file) }
      return .end(pending.isEmpty ? .file(file) : nil)
    }
  }

  private mutating func follow(_ link: MergedFile) throws(Errno) -> Step {
    links += 1
    guard links <= Self.mostLinks, let target = try link.linkTarget(), target.first != Self.slash else {
      return .end(nil)
    }
    // A final slash wants a directory, and so does a dot.
    if target.last == Self.slash { pending.append([UInt8(ascii: ".")]) }
    pending += target.split(separator: Self.slash).reversed().map { Array($0) }
    return .onward
  }
}
