import Bundles
import Fuse
import Layers
import Posix

/// Makes changes in our own mount that have been made in a layer already, for the sake of their inotify events.
///
/// A change must never reach another file system: after an unmount, or beneath another mount, the mount's path is
/// a real directory of the user's. So no call here uses a path alone. The root is opened for the time that this
/// lives, in a clone of the mount if possible, so that umount(2) succeeds meanwhile; it must have our device number, and must answer a lookup that only our daemon can expect. Everything below
/// is opened by openat2(2) without links, `..` or mounts on the way, and the last component is only a name in such
/// a directory.
final class Replayer {
  private let store: NodeStore
  private let kernel: any KernelNotifier
  private let expected: ExpectedRequest
  private let root: MountRoot
  private let device: UInt64
  private var last: (node: NodeID, directory: SharedDescriptor)?

  /// Whether the mount can be unmounted while this lives.
  var isDetached: Bool { root.isDetached }

  /// Opens the mount.
  /// - Throws: ESTALE where the path does not lead to our mount; what open(2) answers.
  init(
    _ store: NodeStore, _ kernel: any KernelNotifier, _ expected: ExpectedRequest, probeName: [UInt8]
  ) throws(Errno) {
    self.store = store
    self.kernel = kernel
    self.expected = expected
    let root = try kernel.openRoot()
    device = try root.directory.device()
    let isOurs = expected.expect(.rootProbe(probeName)) {
      _ = try? withCName(probeName) { name throws(Errno) in try root.directory.attributes(of: name) }
    }
    self.root = root
    // A device number is reused as soon as the mount is gone.
    if !isOurs { throw .staleFileHandle }
  }

  /// IN_CREATE for a name.
  /// - Throws: why the kernel did not send the event.
  func create(_ key: EntryKey, _ kind: FileKind) throws(Errno) {
    // A directory that another process has looked up may be in use; expiring it would detach mounts in it.
    let expired = kind == .directory ? [] : [key]
    let directory = try open(key.parent)
    try attempt(.appearance(key, kind), expiring: expired) { () throws(Errno) in
      try withCName(key.name) { name throws(Errno) in try directory.descriptor.make(name, kind) }
    }
  }

  /// IN_DELETE for a name.
  func remove(_ key: EntryKey, isDirectory: Bool) throws(Errno) {
    let directory = try open(key.parent)
    try attempt(.disappearance(key, isDirectory: isDirectory), expiring: [key]) { () throws(Errno) in
      try withCName(key.name) { name throws(Errno) in
        try directory.descriptor.remove(name, isDirectory: isDirectory)
      }
    }
  }

  /// IN_DELETE_SELF for the files that lost a name; their watchers get no event of the file that has it now.
  ///
  /// A directory by that name that the kernel has looked up is left alone: the notification would detach it from its
  /// path before the kernel compares the node (`fuse_reverse_inval_entry`), and programs may have it open.
  func deleteFormerEntries(_ key: EntryKey) {
    if store.childDirectory(named: key.name, in: key.parent) != nil { return }
    for file in formerFiles(at: key) { try? kernel.deleteEntry(key.name, in: key.parent, of: file) }
  }

  /// The files that the kernel may still know by a name that is another file's now.
  private func formerFiles(at key: EntryKey) -> [NodeID] {
    guard let merged = try? store.merged(of: key.parent) else { return [] }
    let found = try? withCName(key.name) { name throws(Errno) in try merged.lookup(name) }
    return store.table.withLock { table in
      guard let parent = try? table.slot(of: key.parent) else { return [] }
      var present: [UInt32] = []
      if case .file(let layer, let attributes) = found {
        present = table.files(attributes.identity, layer: layer)
      }
      return table.files(lastNamed: key.name, in: parent).filter { !present.contains($0) }
        .map { table.number(of: $0) }
    }
  }

  /// IN_MOVED_FROM and IN_MOVED_TO for a file.
  func rename(_ source: EntryKey, to target: EntryKey) throws(Errno) {
    let (from, to) = (try open(source.parent), try open(target.parent))
    try attempt(.renaming(source, to: target), expiring: [source, target]) { () throws(Errno) in
      try withCName(source.name) { name throws(Errno) in
        try withCName(target.name) { newName throws(Errno) in
          try from.descriptor.rename(name, to: newName, in: to.descriptor)
        }
      }
    }
  }

  /// IN_MODIFY and IN_CLOSE_WRITE for a file.
  func write(_ key: EntryKey, isModified: Bool = true, isClosed: Bool = true) throws(Errno) {
    let file = try open(key)
    let attributes = try file.cachedAttributes()
    guard attributes.isRegular else { throw .invalidArgument }
    var failure: Errno?
    if isModified { failure = Self.failure { () throws(Errno) in try touch(file, both: false) } }
    if isClosed, openAndClose(key, file) { return }
    if let failure { throw failure }
    if !isModified { try touch(file, both: false) }
  }

  /// IN_OPEN and IN_CLOSE_WRITE for a file that is no program.
  ///
  /// A program that is open for writing cannot be started (ETXTBSY), which one that has just been built and made
  /// executable must not meet: neither if it is executable in its layer by now, the kernel's mode of it being out of
  /// date, nor if it may become so in the instant for which it is open.
  private func openAndClose(_ key: EntryKey, _ file: borrowing Descriptor) -> Bool {
    guard (try? isProgram(key)) == false else { return false }
    return (try? file.reopened([.write, .nonBlocking, .noControllingTerminal])) != nil
  }

  private func isProgram(_ key: EntryKey) throws(Errno) -> Bool {
    let merged = try store.merged(of: key.parent)
    return try withCName(key.name) { name throws(Errno) in
      guard case .file(let layer, let attributes) = try merged.lookup(name),
        let part = merged.part(of: layer, with: name, attributes.identity)
      else { throw .noSuchFileOrDirectory }
      if attributes.mode & 0o111 != 0 { return true }
      let file = try part.openFile(name, identity: attributes.identity)
      return ProgramFormat.isProgram(try file.leadingBytes(ProgramFormat.headerSize))
    }
  }

  /// IN_ATTRIB for what has a name.
  func touch(_ key: EntryKey) throws(Errno) { try touch(try open(key), both: true) }

  func touch(_ directory: NodeID) throws(Errno) { try touch(try open(directory).descriptor, both: true) }

  private func touch(_ file: borrowing Descriptor, both: Bool) throws(Errno) {
    var failure = Errno.staleFileHandle
    let number = try file.cachedAttributes().identity.inode
    let isMet = expected.expect(.touch(number)) {
      failure = Self.failure { () throws(Errno) in try file.rewriteTimes(includingAccess: both) } ?? failure
    }
    if !isMet { throw failure }
  }

  /// Makes a change, once more if the daemon did not see its request.
  /// - Parameter keys: names that the kernel may have looked up meanwhile. They are expired before the second
  ///   attempt, since the kernel would answer from its dentries.
  private func attempt(
    _ change: SyntheticChange, expiring keys: [EntryKey], _ call: () throws(Errno) -> Void
  ) throws(Errno) {
    var failure = Errno.staleFileHandle
    for isLast in [keys.isEmpty, true] {
      let isMet = expected.expect(change) { failure = Self.failure(call) ?? failure }
      if isMet { return }
      if isLast { break }
      for key in keys { try? kernel.expireEntry(key.name, in: key.parent) }
    }
    throw failure
  }

  private static func failure(_ call: () throws(Errno) -> Void) -> Errno? {
    do throws(Errno) {
      try call()
      return nil
    } catch {
      return error
    }
  }

  // MARK: - Opening

  private func open(_ key: EntryKey) throws(Errno) -> Descriptor {
    let directory = try open(key.parent)
    let file = try withCName(key.name) { name throws(Errno) in
      try directory.descriptor.openBeneath(name, [.pathOnly, .noFollow])
    }
    guard try file.device() == device else { throw .staleFileHandle }
    return file
  }

  /// - Throws: ENAMETOOLONG for a path longer than PATH_MAX.
  private func open(_ directory: NodeID) throws(Errno) -> SharedDescriptor {
    if let last, last.node == directory { return last.directory }
    let path = try store.path(of: directory).joinedPath
    let opened = try withCName(path.isEmpty ? [UInt8(ascii: ".")] : path) { path throws(Errno) in
      try root.directory.openBeneath(path, [.pathOnly, .directory, .noFollow])
    }
    let found = SharedDescriptor(opened)
    last = (directory, found)
    return found
  }
}
