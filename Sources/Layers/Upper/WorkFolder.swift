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
    try withCName(freshName) { name throws(Errno) in
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

  private var freshName: [UInt8] {
    Array("\(getpid())-\(next.wrappingAdd(1, ordering: .relaxed).newValue)".utf8)
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
    try root.keepingTimes { () throws(Errno) in
      do throws(Errno) { try root.makeDirectory(path, mode: 0o700) } catch {
        if error != .fileExists { throw error }
      }
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
      try? root.gate.call { () throws(Errno) in try removeTree(name, in: found.descriptor) }
    }
  }

  /// Removes an entry of the folder with all that is in it, however deep: the directories in it first become entries of the
  /// folder. Follows no links.
  func removeTree(_ name: [UInt8], in folder: borrowing Descriptor) throws(Errno) {
    var pending = [name]
    while let name = pending.popLast() {
      try withCName(name) { name throws(Errno) in
        if try folder.removeEntry(name) { return }
        try folder.unlocking(name) { () throws(Errno) in
          let directory = try folder.open(name, [.pathOnly, .directory, .noFollow])
          for child in try directory.entryNames() where try !directory.removeEntry(child) {
            pending.append(try moveAside(child, from: directory, to: folder))
          }
        }
        try folder.remove(name, isDirectory: true)
      }
    }
  }

  /// - Returns: the directory's name in the folder.
  private func moveAside(
    _ directory: [UInt8], from parent: borrowing Descriptor, to folder: borrowing Descriptor
  ) throws(Errno) -> [UInt8] {
    let aside = freshName
    try withCName(directory) { name throws(Errno) in
      try withCName(aside) { aside throws(Errno) in
        try parent.unlocking(name) { () throws(Errno) in try parent.rename(name, to: aside, in: folder) }
      }
    }
    return aside
  }

  private static func belongsToLivingProcess(_ name: [UInt8]) -> Bool {
    let digits = name.prefix { $0 != UInt8(ascii: "-") }
    guard let process = pid_t(String(decoding: digits, as: UTF8.self)), process > 0, process != getpid()
    else { return false }
    return kill(process, 0) == 0 || errno == EPERM
  }

  // MARK: - The end

  /// Removes the folder if it is empty.
  /// - Parameter isOwn: whether this process, or one that it has followed, has locked it. Else it stays if any process has.
  func remove(isOwn: Bool) {
    opened.withLock { $0 = nil }
    try? layer.root.withDescriptor { root throws(Errno) in
      if isOwn { return try Self.remove(from: root) }
      let folder = try root.open(Self.path, [.read, .directory, .noFollow])
      guard try folder.lock() else { return }
      // Kept until it is removed: a mount that had locked it in between would lose it.
      try withExtendedLifetime(folder) { () throws(Errno) in try Self.remove(from: root) }
    }
  }

  private static func remove(from root: borrowing Descriptor) throws(Errno) {
    try root.keepingTimes { () throws(Errno) in try root.remove(path, isDirectory: true) }
  }
}

/// A mount keeps others from writing to its layer by a lock on the folder (flock(2)).
extension WorkFolder {
  /// A mount that has just ended may still have the lock for a moment.
  private static let (attempts, interval): (Int, UInt32) = (500, 10_000)
  /// Attempts between two questions whether it has ended.
  private static let attemptsUnasked = 50

  /// Locks the folder, which is made.
  /// - Parameter isTaken: whether another mount that has not ended has the lock.
  /// - Returns: a descriptor that has the lock until it is closed by all processes; nil if the file system has no locks.
  /// - Throws: EBUSY if another mount has it, for 5 s if that is not certain; EACCES, EROFS and other errors of a layer that
  ///   cannot be written to.
  func lock(_ isTaken: () -> Bool) throws(Errno) -> Descriptor? {
    for attempt in 0..<Self.attempts {
      let folder = try layer.root.withDescriptor { root throws(Errno) in
        try Self.make(in: root).open(".", [.read, .directory])
      }
      do throws(Errno) {
        // The mount that had it before may have removed the folder.
        if try folder.lock(), try folder.attributes().links > 0 { return folder }
      } catch {
        return nil
      }
      if attempt % Self.attemptsUnasked == 0, isTaken() { break }
      usleep(Self.interval)
    }
    throw .resourceBusy
  }
}

extension Descriptor {
  /// Calls flock(2) with `LOCK_EX | LOCK_NB`.
  /// - Returns: whether it has the lock; false if another open file has.
  fileprivate func lock() throws(Errno) -> Bool {
    if flock(rawValue, LOCK_EX | LOCK_NB) == 0 { return true }
    if errno != EWOULDBLOCK { throw .current }
    return false
  }
}

extension Descriptor {
  /// Runs the body, which changes the entries of this directory, and restores the directory's times, since what is seen
  /// has not changed.
  func keepingTimes(_ body: () throws(Errno) -> Void) throws(Errno) {
    let former = try attributes()
    try body()
    // The body has succeeded in any case.
    try? setTimes(accessed: .at(former.accessed), modified: .at(former.modified))
  }

  /// The names of all entries of this directory, which may be opened in any way.
  func entryNames() throws(Errno) -> [[UInt8]] {
    var names: [[UInt8]] = []
    try open(".", [.read, .directory]).forEachEntry { entry throws(Errno) in
      names.append([UInt8](bytesOf: entry.name))
    }
    return names
  }

  /// Removes an entry, of any kind, that need not exist.
  /// - Returns: false for a directory that is not empty.
  func removeEntry(_ name: [UInt8]) throws(Errno) -> Bool {
    try withCName(name) { name throws(Errno) in try removeEntry(name) }
  }

  /// As `removeEntry`.
  func removeEntry(_ name: CName) throws(Errno) -> Bool {
    for isDirectory in [false, true] {
      do throws(Errno) {
        try remove(name, isDirectory: isDirectory)
        return true
      } catch {
        if error == .noSuchFileOrDirectory { return true }
        if isDirectory, error == .directoryNotEmpty || error == .fileExists { return false }
        // POSIX: EPERM for a directory.
        let mayBeDirectory = !isDirectory && (error == .isDirectory || error == .notPermitted)
        if !mayBeDirectory { throw error == .notDirectory ? .notPermitted : error }
      }
    }
    return false
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
