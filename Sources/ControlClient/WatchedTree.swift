import CLibrary
import Posix

/// What is watched for the changes of a bundle.
public enum WatchedRoot: Sendable {
  /// A layer. The directory that holds it is watched, too, since it may be removed and created again.
  case directory([UInt8])
  /// An archive, of which only the directory that holds it is watched.
  case archive([UInt8])
  /// A mount, with the name of its control file, which changes all the time.
  case mount([UInt8], control: [UInt8])
  /// A mount of which only the end is watched. What uses the mount pays nothing for that.
  case end([UInt8])

  /// The path of the directory, the archive, or the mount.
  public var path: [UInt8] {
    switch self {
    case .directory(let path), .archive(let path), .mount(let path, _), .end(let path): path
    }
  }

  fileprivate var isEnd: Bool { if case .end = self { true } else { false } }
}

extension WatchedRoot {
  /// The process that serves the mount; nil for layers.
  public var process: MountProcess? {
    if case .mount(let path, _) = self { MountProcess(of: path) } else { nil }
  }
}

/// Watches on directories and all directories below them.
public struct WatchedTree: ~Copyable {
  /// Why a directory is watched.
  private enum Role {
    /// It is part of a root's tree. The path is relative to the root.
    case part(of: Int, path: [[UInt8]])
    /// It holds a layer of this name.
    case holder(of: [UInt8])
    case end
  }

  private let inotify: Inotify
  private let roots: [WatchedRoot]
  /// The device number of a mount that layers may hold, and that is not watched as a part of them.
  private let excludedDevice: UInt64?
  private var roles: [WatchDescriptor: [Role]] = [:]

  private static let events: InotifyEvent.Mask = [.content, .names, .attributes, .dontFollow]

  /// Creates a tree without watches.
  /// - Parameter excludedDevice: the device number of a mount that is not watched as a part of a layer.
  public init(_ inotify: consuming Inotify, roots: [WatchedRoot], excludedDevice: UInt64? = nil) {
    self.inotify = inotify
    self.roots = roots
    self.excludedDevice = excludedDevice
  }

  /// The descriptor to poll for events.
  public var rawValue: CInt { inotify.rawValue }

  /// An entry that has changed.
  public struct Change: Hashable, Sendable {
    /// The index of the root.
    public let root: Int
    /// The names from the root.
    public let path: [[UInt8]]
  }

  /// What has changed.
  public enum Outcome {
    case changed(Set<Change>)
    /// Everything may have.
    case anything
    case unmounted
  }

  /// Reads pending events, and watches what has appeared.
  /// - Throws: ENOSPC beyond `fs.inotify.max_user_watches`.
  public mutating func read() throws(Errno) -> Outcome {
    var changes: Set<Change> = []
    var isAnything = false
    for event in try inotify.read() {
      if event.mask.contains(.unmounted) {
        if isEnd(event.watch) { return .unmounted }
        isAnything = true
      }
      if event.mask.contains(.overflow) { isAnything = true }
      if event.mask.contains(.ignored) { roles[event.watch] = nil }
      for role in roles[event.watch] ?? [] {
        switch role {
        case .end: continue
        case .holder(let name): if name == event.name { isAnything = true }
        case .part(let root, let path):
          if event.name.isEmpty || isControlFile(event.name, at: path) { continue }
          changes.insert(Change(root: root, path: path + [event.name]))
          let mayBeNew = !event.mask.isDisjoint(with: [.created, .movedTo])
          if mayBeNew, event.mask.contains(.isDirectory) { try watch(root, path + [event.name]) }
        }
      }
    }
    if !isAnything { return .changed(changes) }
    try watchRoots()
    return .anything
  }

  /// Whether the end of what a watch is on is that of the whole: of the mount if it is watched for that.
  private func isEnd(_ watch: WatchDescriptor) -> Bool {
    if !roots.contains(where: \.isEnd) { return true }
    return roles[watch]?.contains { if case .end = $0 { true } else { false } } ?? false
  }

  private func isControlFile(_ name: [UInt8], at path: [[UInt8]]) -> Bool {
    guard path.isEmpty, case .mount(_, let control)? = roots.first else { return false }
    return name == control
  }

  // MARK: - Watches

  /// Watches everything anew.
  /// - Throws: ENOSPC beyond `fs.inotify.max_user_watches`.
  public mutating func watchRoots() throws(Errno) {
    for watch in roles.keys { inotify.remove(watch) }
    roles = [:]
    for (index, root) in roots.enumerated() {
      switch root {
      case .directory: try watchHolder(of: root.path)
      case .archive:
        try watchHolder(of: root.path)
        continue
      case .end:
        try add(root.path, .end)
        continue
      case .mount: break
      }
      try watch(index, [])
    }
  }

  private mutating func watchHolder(of path: [UInt8]) throws(Errno) {
    guard let index = path.lastIndex(of: slash), index + 1 < path.count else { return }
    let holder = index == 0 ? [slash] : Array(path[..<index])
    try add(holder, .holder(of: Array(path[(index + 1)...])))
  }

  /// Watches a directory and all below it. Each is watched before it is listed, so that nothing is missed.
  private mutating func watch(_ root: Int, _ path: [[UInt8]]) throws(Errno) {
    var pending = [path]
    while let path = pending.popLast() {
      let full = Array(([roots[root].path] + path).joined(separator: [slash]))
      if isExcluded(full) { continue }
      guard try add(full, .part(of: root, path: path)) else { continue }
      for name in Self.directories(in: full) { pending.append(path + [name]) }
    }
  }

  private func isExcluded(_ path: [UInt8]) -> Bool {
    guard let excludedDevice else { return false }
    return (try? Descriptor.open(path, [.pathOnly, .noFollow]).device()) == excludedDevice
  }

  /// - Returns: whether the directory exists and may be watched.
  @discardableResult
  private mutating func add(_ path: [UInt8], _ role: Role) throws(Errno) -> Bool {
    var events = Self.events
    // An end is reported whatever is asked for; of these events, entries have none.
    if case .end = role { events = [.deletedSelf, .dontFollow] }
    do throws(Errno) {
      let watch = try withCName(path) { name throws(Errno) in try inotify.watch(name, events) }
      // A directory that was moved has its former watch.
      if case .part(let root, _) = role {
        roles[watch]?.removeAll { if case .part(root, _) = $0 { true } else { false } }
      }
      roles[watch, default: []].append(role)
      return true
    } catch {
      if error.rawValue == ENOSPC || error.rawValue == ENOMEM { throw error }
      return false
    }
  }

  private static func directories(in path: [UInt8]) -> [[UInt8]] {
    var names: [[UInt8]] = []
    guard let directory = try? Descriptor.open(path, [.read, .directory, .noFollow]) else { return [] }
    try? directory.forEachDirectory { names.append($0) }
    return names
  }
}

private let slash = UInt8(ascii: "/")
