import Glibc
import Posix
import Synchronization

/// The folder in the upper layer where entries are made that must appear whole. No view shows it, since its name begins
/// as a whiteout marker does.
///
/// An entry is named after the process that makes it, so that a sweep leaves those of other living processes alone.
final class WorkFolder: Sendable {
  static let name: StaticString = ".wh..wh.bundlefs-work"
  private let layer: DirectoryLayer
  private let next = Atomic<UInt64>(0)
  /// The folder, and the root that it was opened in.
  private let opened = Locked<(root: LayerDirectory, folder: SharedDescriptor)?>(nil)

  init(_ layer: DirectoryLayer) { self.layer = layer }

  /// Calls the body with the folder and a name that is free in it. Makes no call on a gate: the caller does.
  func withName<Result: ~Copyable>(
    _ body: (borrowing Descriptor, CName) throws(Errno) -> Result
  ) throws(Errno) -> Result {
    let name = Array("\(getpid())-\(next.wrappingAdd(1, ordering: .relaxed).newValue)".utf8)
    return try withCName(name) { name throws(Errno) in
      let folder = try folder()
      do throws(Errno) { return try body(folder.descriptor, name) } catch {
        // The folder can have been removed from outside.
        guard error == .noSuchFileOrDirectory, try folder.descriptor.attributes().links == 0 else {
          throw error
        }
        opened.withLock { $0 = nil }
        return try body(try self.folder().descriptor, name)
      }
    }
  }

  private func folder() throws(Errno) -> SharedDescriptor {
    let root = layer.root
    let known = opened.withLock { $0.flatMap { $0.root === root ? $0.folder : nil } }
    if let known { return known }
    guard case .descriptor(let handle) = root.backing else { throw .readOnlyFileSystem }
    let folder = SharedDescriptor(try Self.make(in: handle.descriptor))
    opened.withLock { $0 = (root, folder) }
    return folder
  }

  private static func make(in root: borrowing Descriptor) throws(Errno) -> Descriptor {
    do throws(Errno) { try root.makeDirectory(path, mode: 0o700) } catch {
      if error != .fileExists { throw error }
    }
    let folder = try root.open(path, [.pathOnly, .directory, .noFollow])
    // Entries would inherit it.
    try folder.removeIfPresent(ACLAttribute.default.cName)
    return folder
  }

  private static var path: CName { name.cName }

  /// Whether an entry of the layer's root is the folder.
  static func isName(_ name: CName) -> Bool { strcmp(name, path) == 0 }

  // MARK: - Sweeping

  /// Removes what processes that have ended left in the folder.
  func sweep() throws(Errno) {
    let root = layer.root
    let found = try root.withDescriptor { root throws(Errno) in
      try root.contains(Self.path)
        ? SharedDescriptor(root.open(Self.path, [.pathOnly, .directory, .noFollow])) : nil
    }
    guard let found else { return }
    let names = try root.gate.call { () throws(Errno) in try found.descriptor.entryNames() }
    for name in names where !Self.belongsToLivingProcess(name) {
      // What cannot be removed is not shown, and stays.
      try? root.gate.call { () throws(Errno) in
        try withCName(name) { name throws(Errno) in try found.descriptor.removeTree(name) }
      }
    }
  }

  private static func belongsToLivingProcess(_ name: [UInt8]) -> Bool {
    let digits = name.prefix { $0 != UInt8(ascii: "-") }
    guard let process = pid_t(String(decoding: digits, as: UTF8.self)), process > 0, process != getpid()
    else { return false }
    return kill(process, 0) == 0 || errno == EPERM
  }

  /// Removes the folder if it is empty.
  func remove() {
    opened.withLock { $0 = nil }
    _ = try? layer.root.withDescriptor { root throws(Errno) in
      try root.remove(Self.path, isDirectory: true)
    }
  }
}

extension Descriptor {
  /// The names of all entries of this directory, which may be opened in any way.
  func entryNames() throws(Errno) -> [[UInt8]] {
    var names: [[UInt8]] = []
    try open(".", [.read, .directory]).forEachEntry { entry throws(Errno) in
      names.append([UInt8](bytesOf: entry.name))
    }
    return names
  }

  /// Removes an entry of this directory with all that is in it; follows no links.
  /// - Throws: ELOOP for a tree that is deeper than any that we make.
  func removeTree(_ name: CName, depth: Int = 0) throws(Errno) {
    if depth > 16 { throw .tooManySymbolicLinkLevels }
    do throws(Errno) {
      return try remove(name, isDirectory: false)
    } catch {
      // POSIX: EPERM for a directory.
      if error == .noSuchFileOrDirectory { return }
      guard error == .isDirectory || error == .notPermitted else { throw error }
    }
    let directory = try open(name, [.pathOnly, .directory, .noFollow])
    while true {
      let names = try directory.entryNames()
      if names.isEmpty { break }
      for name in names {
        try withCName(name) { name throws(Errno) in try directory.removeTree(name, depth: depth + 1) }
      }
    }
    try remove(name, isDirectory: true)
  }

  /// Runs the body, which moves or empties a directory of this one. Without privileges, that takes the permission to write
  /// to it, which its owner can have given up.
  /// - Parameter relocks: whether the directory stays.
  func unlocking(
    _ name: CName, relocks: Bool = false, _ body: () throws(Errno) -> Void
  ) throws(Errno) {
    do throws(Errno) { return try body() } catch {
      if error != .permissionDenied { throw error }
    }
    guard let directory = try? open(name, [.pathOnly, .directory, .noFollow]),
      let mode = try? directory.attributes().mode, (try? directory.changeMode(mode | 0o700)) != nil
    else { throw .permissionDenied }
    do throws(Errno) { try body() } catch {
      try? directory.changeMode(mode)
      throw error
    }
    if relocks { try directory.changeMode(mode) }
  }

  /// Removes an extended attribute that need not exist.
  func removeIfPresent(_ attribute: CName) throws(Errno) {
    do throws(Errno) { try removeExtendedAttribute(attribute) } catch {
      if error != .noData && error != .notSupported { throw error }
    }
  }
}
