import CLibrary
import Posix

/// Watches for all that could change what a look-up finds in the layers.
///
/// The kernel queues an event before the call that makes a change returns. So a thread that polls the queue before it
/// uses what was cached knows of every change that was finished by then. Watched are all directories of the layers,
/// single files, which may also be changed by hard links elsewhere, the names on the paths to the layers, and the mounts.
final class LayerWatch {
  enum Outcome {
    case unchanged
    case changed
    /// Another directory may be at a layer's path, or events are missing. The watch is of no use any more.
    case lost
  }

  private struct Role {
    /// The path of a directory in a layer.
    var path: [UInt8]?
    /// The entries that are on the path to a layer.
    var held: Set<[UInt8]> = []
  }

  private let inotify: Inotify
  private let mountTable: MountTableWatch
  private let epoll: Epoll
  private let layers: [[UInt8]]
  private let mounts: [LayerMount]
  private var roles: [WatchDescriptor: Role] = [:]
  private var files: Set<[UInt8]> = []
  private var fileWatches: Set<WatchDescriptor> = []

  private static let (inotifyBits, mountBits): (UInt64, UInt64) = (1, 2)
  private static let names: InotifyEvent.Mask = [.names, .dontFollow, .maskAdd]
  private static let all: InotifyEvent.Mask = [.content, .names, .attributes, .dontFollow, .maskAdd]
  /// Each takes about a kilobyte of the kernel's memory.
  static let maxDirectories = 8192

  /// Begins to watch.
  /// - Parameter layers: the absolute paths of directories, without symbolic links.
  /// - Throws: EXDEV if something is mounted inside a layer; EMFILE beyond `fs.inotify.max_user_instances`; ENOSPC beyond
  ///   `fs.inotify.max_user_watches` or ``maxDirectories``; EACCES for a directory that may not be read; ENOENT.
  init(layers: [[UInt8]]) throws(Errno) {
    inotify = try Inotify()
    mountTable = try MountTableWatch()
    epoll = try Epoll()
    self.layers = layers
    try epoll.add(inotify.rawValue, bits: Self.inotifyBits)
    try epoll.add(mountTable.rawValue, isUrgent: true, bits: Self.mountBits)
    mounts = try LayerMount.all(of: layers)
    for layer in layers {
      try watchPath(to: layer)
      try watch(directory: layer)
      try watchDirectories(in: layer)
    }
  }

  /// Takes the pending events.
  func poll() -> Outcome {
    let bits = epoll.poll()
    if bits == 0 { return .unchanged }
    if bits & Self.mountBits != 0 {
      guard let present = try? LayerMount.all(of: layers), present == mounts else { return .lost }
    }
    guard let outcome = try? takeEvents() else { return .lost }
    if case .changed = outcome { forgetFiles() }
    return outcome
  }

  /// Watches a file until the next change.
  /// - Throws: ENOENT; ENOSPC beyond `fs.inotify.max_user_watches`.
  func watch(file path: [UInt8]) throws(Errno) {
    if files.contains(path) { return }
    let watch = try withCName(path) { name throws(Errno) in try inotify.watch(name, Self.all) }
    files.insert(path)
    fileWatches.insert(watch)
  }

  /// Another file may be at each path.
  private func forgetFiles() {
    // What was a file may be a directory of a layer by now, with the same watch.
    for watch in fileWatches where roles[watch] == nil { inotify.remove(watch) }
    (files, fileWatches) = ([], [])
  }

  // MARK: - Events

  /// How often the queue is read in one poll: a program that writes without a pause always adds to it.
  private static let maxReads = 16

  private func takeEvents() throws(Errno) -> Outcome {
    var hasChanged = false
    for _ in 0..<Self.maxReads {
      let events = try inotify.read()
      if events.isEmpty { return hasChanged ? .changed : .unchanged }
      for event in events {
        switch try take(event) {
        case .unchanged: break
        case .changed: hasChanged = true
        case .lost: return .lost
        }
      }
    }
    return .changed
  }

  private func take(_ event: InotifyEvent) throws(Errno) -> Outcome {
    if !event.mask.isDisjoint(with: [.overflow, .unmounted]) { return .lost }
    guard let role = roles[event.watch] else {
      return fileWatches.contains(event.watch) ? .changed : .unchanged
    }
    if role.held.contains(event.name), !event.mask.isDisjoint(with: .names) { return .lost }
    if event.mask.contains(.ignored) { roles[event.watch] = nil }
    guard let path = role.path else { return .unchanged }
    let mayBeNew = !event.mask.isDisjoint(with: [.created, .movedTo])
    if mayBeNew, event.mask.contains(.isDirectory) { try watchDirectories(below: path, event.name) }
    return .changed
  }

  // MARK: - Watches

  private func watchPath(to layer: [UInt8]) throws(Errno) {
    var path: [UInt8] = []
    for name in layer.split(separator: slash) {
      let watch = try withCName(path + [slash]) { name throws(Errno) in try inotify.watch(name, Self.names) }
      roles[watch, default: Role()].held.insert(Array(name))
      path += [slash] + name
    }
  }

  private func watch(directory path: [UInt8]) throws(Errno) {
    if roles.count >= Self.maxDirectories { throw Errno(rawValue: ENOSPC) }
    let watch = try withCName(path) { name throws(Errno) in try inotify.watch(name, Self.all) }
    // A directory that was moved has its former watch.
    roles[watch, default: Role()].path = path
  }

  /// Watches all directories below one that is watched. Each is watched before it is listed, so that nothing is missed.
  private func watchDirectories(in directory: [UInt8]) throws(Errno) {
    var pending = [directory]
    while let path = pending.popLast() {
      for name in try Self.directories(in: path) {
        let path = path + [slash] + name
        // An event will come for one that is gone.
        if try isPresent({ () throws(Errno) in try watch(directory: path) }) { pending.append(path) }
      }
    }
  }

  private func watchDirectories(below parent: [UInt8], _ name: [UInt8]) throws(Errno) {
    let path = parent + [slash] + name
    if try isPresent({ () throws(Errno) in try watch(directory: path) }) { try watchDirectories(in: path) }
  }

  private static func directories(in path: [UInt8]) throws(Errno) -> [[UInt8]] {
    var names: [[UInt8]] = []
    _ = try isPresent { () throws(Errno) in
      let directory = try Descriptor.open(path, [.read, .directory, .noFollow])
      try directory.forEachDirectory { names.append($0) }
    }
    return names
  }
}

private let slash = UInt8(ascii: "/")

/// - Returns: false if the body throws that there is no such directory.
private func isPresent(_ body: () throws(Errno) -> Void) throws(Errno) -> Bool {
  do throws(Errno) {
    try body()
    return true
  } catch {
    let isGone = error == .noSuchFileOrDirectory || error == .notDirectory
    if isGone || error == .tooManySymbolicLinkLevels { return false }
    throw error
  }
}
