import CLibrary
import Posix

/// The root of a folder that is a layer, and its attributes when it was opened.
struct OpenedRoot: Sendable {
  let directory: LayerDirectory
  let attributes: FileStatus
}

/// The folders of the view above a layer that is laid at one of them. Each has one entry, the next one, and the last one the root of
/// the layer's folder or archive.
///
/// Where no other layer has them, they are directories of mode 0755 of this process's user, with the times that the root had
/// when it was opened. So nothing in them changes, and nothing has to be watched. A class, so that directories of other layers
/// stay as small as they are.
final class FoldersAbove: Sendable {
  enum Root: Sendable {
    case folder(Locked<OpenedRoot>)
    case archive(ArchiveLayer)
  }

  private let names: [[UInt8]]
  private let root: Root
  /// How many names lead to this folder from the root of the view.
  private let depth: Int

  /// The root of the view.
  /// - Parameter names: of the folders; not empty.
  convenience init(_ names: [[UInt8]], _ root: Root) { self.init(names, root, depth: 0) }

  private init(_ names: [[UInt8]], _ root: Root, depth: Int) {
    (self.names, self.root, self.depth) = (names, root, depth)
  }

  /// The directory above a layer, at the root of the view.
  func directory(_ gate: LayerGate) -> LayerDirectory {
    LayerDirectory(above: self, gate, identity: identity, place: gate.hidden?.root)
  }

  /// No file system has these device numbers; see `ArchiveLayer.identity`, which uses those below.
  private static let (major, firstMinor): (UInt32, UInt32) = (4095, 4096)

  /// Whether an identity is one of such folders.
  static func isIdentity(_ identity: FileIdentity) -> Bool {
    let device = majorMinor(identity.device)
    return device.major == major && device.minor >= firstMinor
  }

  private var identity: FileIdentity {
    FileIdentity(
      device: deviceNumber(major: Self.major, minor: Self.firstMinor + UInt32(clamping: depth)),
      inode: ownRoot.identity.inode, born: TimeSpec(seconds: 0, nanoseconds: 0))
  }

  private var ownRoot: LayerDirectory {
    switch root {
    case .folder(let opened): opened.withLock { $0.directory }
    case .archive(let archive): archive.ownRoot
    }
  }

  /// - Throws: ENOENT if the archive no longer has the folder that is the layer.
  func attributes() throws(Errno) -> FileStatus {
    let root =
      switch root {
      case .folder(let opened): opened.withLock { $0.attributes }
      case .archive(let archive): try archive.ownRoot.attributes()
      }
    var attributes = FileStatus(
      directory: 0o755, owner: geteuid(), group: getegid(), modified: root.modified, changed: root.changed)
    attributes.identity = identity
    return attributes
  }

  // MARK: - The entry

  func has(_ name: CName) -> Bool {
    let own = names[depth]
    return strlen(name) == own.count && memcmp(name, own, own.count) == 0
  }

  /// - Parameter directory: of these folders.
  func find(_ name: CName, in directory: LayerDirectory) throws(Errno) -> LayerDirectory.Found {
    guard has(name) else { return .nothing }
    let next = next(in: directory)
    return .directory(next, try next.attributes())
  }

  /// - Parameter directory: of these folders.
  func next(in directory: LayerDirectory) -> LayerDirectory {
    if depth + 1 == names.count { return ownRoot }
    let below = FoldersAbove(names, root, depth: depth + 1)
    return LayerDirectory(
      above: below, directory.gate, identity: below.identity,
      place: directory.place?.entering(names[depth][...]))
  }

  /// - Parameter directory: of these folders.
  func forEachEntry(
    in directory: LayerDirectory, _ body: (DirectoryEntry) throws(Errno) -> Void
  ) throws(Errno) {
    let inode = next(in: directory).identity.inode
    try withCName(names[depth]) { name throws(Errno) in
      try body(DirectoryEntry(name: name, nameLength: names[depth].count, inode: inode, kind: .directory))
    }
  }

  /// Calls `statvfs(3)` for the file system that holds the layer.
  func statvfs() throws(Errno) -> statvfs { try ownRoot.statvfs() }
}

extension HiddenNames.Place {
  /// The place of a directory in this one.
  func entering(_ name: ArraySlice<UInt8>) -> HiddenNames.Place {
    (try? withCName(Array(name)) { name throws(Errno) in entering(name) }) ?? self
  }

  /// The place of a directory at a path from this one.
  func entering(_ path: [[UInt8]]) -> HiddenNames.Place { path.reduce(self) { $0.entering($1[...]) } }
}
