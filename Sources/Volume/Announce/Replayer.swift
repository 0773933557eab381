import Fuse
import Posix

/// Makes changes in our own mount that have been made already, for the sake of their events.
///
/// A change must never reach anything else: after an unmount, or beneath another mount, the mount's path is a
/// real directory of the user's. So nothing here goes by a path alone. The mount's root is opened for the moment,
/// must have our device number, and must then show to be ours by a question that reaches us; from there on a
/// descriptor cannot come to lie elsewhere, whatever is mounted or unmounted. What is below is opened without
/// links, `..` or other mounts on the way, and the last name is never more than a name in such a directory.
final class Replayer {
  private let volume: Volume
  private let kernel: any KernelNotifier
  private let expectation: ExpectedRequest
  private let root: Descriptor
  private let device: UInt64
  /// The directory that was needed last.
  private var last: (node: NodeID, directory: SharedDescriptor)?

  /// Opens the mount. It cannot be unmounted while this lives.
  /// - Parameter greeting: a name that nothing in the root has.
  /// - Throws: ESTALE where our mount cannot be reached by its path; as open(2).
  init(
    _ volume: Volume, _ kernel: any KernelNotifier, _ expectation: ExpectedRequest, greeting: [UInt8]
  ) throws(Errno) {
    self.volume = volume
    self.kernel = kernel
    self.expectation = expectation
    root = try kernel.openRoot()
    device = try root.device()
    let isOurs = expectation.expect(.rootProbe(greeting)) {
      _ = try? withCName(greeting) { name throws(Errno) in try root.attributes(of: name) }
    }
    // Device numbers are given again, as soon as the mount is gone.
    if !isOurs { throw .staleFileHandle }
  }

  /// Lets watchers know that a name has been made.
  /// - Throws: why they are not told.
  func appear(_ place: EntryKey, _ kind: FileKind) throws(Errno) {
    // A directory that somebody has found already may be in use, and then keeps its place.
    let expired = kind == .directory ? [] : [place]
    let directory = try open(place.parent)
    try attempt(.appearance(place, kind), expiring: expired) { () throws(Errno) in
      try withCName(place.name) { name throws(Errno) in try directory.descriptor.make(name, kind) }
    }
  }

  /// Lets watchers know that a name has been removed.
  /// - Throws: as `appear`.
  func disappear(_ place: EntryKey, isDirectory: Bool) throws(Errno) {
    let directory = try open(place.parent)
    try attempt(.disappearance(place, isDirectory: isDirectory), expiring: [place]) { () throws(Errno) in
      try withCName(place.name) { name throws(Errno) in
        try directory.descriptor.remove(name, isDirectory: isDirectory)
      }
    }
  }

  /// Lets those who watch the files themselves that had a name know that they have it no more: of what has the
  /// name now they hear nothing.
  func leave(_ place: EntryKey) {
    for file in volume.formerFiles(at: place) {
      try? kernel.deleteEntry(place.name, in: place.parent, of: file)
    }
  }

  /// Lets watchers know that a file has been renamed.
  /// - Throws: as `appear`.
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

  /// Lets watchers know that a file has been written to, and that whoever wrote it has closed it.
  /// - Throws: as `appear`.
  func write(_ place: EntryKey, isModified: Bool = true, isClosed: Bool = true) throws(Errno) {
    let file = try open(place)
    let attributes = try file.cachedAttributes()
    guard attributes.isRegular else { throw .invalidArgument }
    // While a program is open for writing, it cannot be started: who starts one that was just changed must not
    // find it busy.
    let isProgram = attributes.mode & 0o111 != 0
    let opened =
      isClosed && !isProgram
      ? try? SharedDescriptor(file.reopened([.write, .nonBlocking, .noControllingTerminal])) : nil
    if isModified || opened == nil {
      do throws(Errno) { try touch(file, both: false) } catch { if opened == nil { throw error } }
    }
    withExtendedLifetime(opened) {}
  }

  /// Lets watchers know that the attributes of what has a name have changed.
  /// - Throws: as `appear`.
  func touch(_ place: EntryKey) throws(Errno) { try touch(try open(place), both: true) }

  /// Lets watchers know that something has happened in a directory.
  /// - Throws: as `appear`.
  func touch(_ directory: NodeID) throws(Errno) { try touch(try open(directory).descriptor, both: true) }

  private func touch(_ file: borrowing Descriptor, both: Bool) throws(Errno) {
    var failure = Errno.staleFileHandle
    let number = try file.cachedAttributes().identity.inode
    let isMet = expectation.expect(.touch(number)) {
      failure = Self.failure { () throws(Errno) in try file.rewriteTimes(includingAccess: both) } ?? failure
    }
    if !isMet { throw failure }
  }

  /// - Parameter places: names that the kernel may have asked for meanwhile. It then knows better than to ask
  ///   again, and has to be made to.
  private func attempt(
    _ replay: SyntheticChange, expiring places: [EntryKey], _ call: () throws(Errno) -> Void
  ) throws(Errno) {
    var failure = Errno.staleFileHandle
    for isLast in [places.isEmpty, true] {
      let isMet = expectation.expect(replay) { failure = Self.failure(call) ?? failure }
      if isMet { return }
      if isLast { break }
      for place in places { try? kernel.expireEntry(place.name, in: place.parent) }
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

  /// What has a name, as a place only.
  private func open(_ place: EntryKey) throws(Errno) -> Descriptor {
    let directory = try open(place.parent)
    let file = try withCName(place.name) { name throws(Errno) in
      try directory.descriptor.openBeneath(name, [.pathOnly, .noFollow])
    }
    guard try file.device() == device else { throw .staleFileHandle }
    return file
  }

  /// - Throws: ENAMETOOLONG for what no program could open by its path either.
  private func open(_ directory: NodeID) throws(Errno) -> SharedDescriptor {
    if let last, last.node == directory { return last.directory }
    let path = try volume.path(of: directory)
    let joined = path.joinedPath
    let opened = try withCName(joined.isEmpty ? [UInt8(ascii: ".")] : joined) { path throws(Errno) in
      try root.openBeneath(path, [.pathOnly, .directory, .noFollow])
    }
    let found = SharedDescriptor(opened)
    last = (directory, found)
    return found
  }
}
