import Glibc
import Posix

/// What is watched for the changes of a bundle.
public enum WatchedRoot: Sendable {
  /// A layer. The directory that holds it is watched, too, since it may be removed and created again.
  case directory([UInt8])
  /// An archive, of which only the directory that holds it is watched.
  case archive([UInt8])
  /// A mount, with the name of its control file, which changes all the time.
  case mount([UInt8], control: [UInt8])

  fileprivate var path: [UInt8] {
    switch self {
    case .directory(let path), .archive(let path), .mount(let path, _): path
    }
  }
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
    /// It is part of a tree. The path is relative to the tree's root.
    case part(of: [UInt8], path: [[UInt8]])
    /// It holds a layer of this name.
    case holder(of: [UInt8])
  }

  private let inotify: Inotify
  private let roots: [WatchedRoot]
  private var roles: [WatchDescriptor: [Role]] = [:]

  private static let events: InotifyEvent.Mask = [.content, .names, .attributes, .dontFollow]

  /// Creates a tree without watches.
  public init(_ inotify: consuming Inotify, roots: [WatchedRoot]) {
    self.inotify = inotify
    self.roots = roots
  }

  /// The descriptor to poll for events.
  public var rawValue: CInt { inotify.rawValue }

  /// What has changed.
  public enum Outcome {
    /// Paths from the root.
    case changed(Set<[UInt8]>)
    /// Everything may have.
    case anything
    case unmounted
  }

  /// Reads pending events, and watches what has appeared.
  /// - Throws: ENOSPC beyond `fs.inotify.max_user_watches`.
  public mutating func read() throws(Errno) -> Outcome {
    var paths: Set<[UInt8]> = []
    var isAnything = false
    for event in try inotify.read() {
      if event.mask.contains(.unmounted) { return .unmounted }
      if event.mask.contains(.overflow) { isAnything = true }
      if event.mask.contains(.ignored) { roles[event.watch] = nil }
      for role in roles[event.watch] ?? [] {
        switch role {
        case .holder(let name): if name == event.name { isAnything = true }
        case .part(let root, let path):
          if event.name.isEmpty || isControlFile(event.name, at: path) { continue }
          paths.insert(Array((path + [event.name]).joined(separator: [slash])))
          let mayBeNew = !event.mask.isDisjoint(with: [.created, .movedTo])
          if mayBeNew, event.mask.contains(.isDirectory) { try watch(root, path + [event.name]) }
        }
      }
    }
    if !isAnything { return .changed(paths) }
    try watchRoots()
    return .anything
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
    for root in roots {
      if case .mount = root {} else { try watchHolder(of: root.path) }
      if case .archive = root { continue }
      try watch(root.path, [])
    }
  }

  private mutating func watchHolder(of path: [UInt8]) throws(Errno) {
    guard let index = path.lastIndex(of: slash), index + 1 < path.count else { return }
    let holder = index == 0 ? [slash] : Array(path[..<index])
    try add(holder, .holder(of: Array(path[(index + 1)...])))
  }

  /// Watches a directory and all below it. Each is watched before it is listed, so that nothing is missed.
  private mutating func watch(_ root: [UInt8], _ path: [[UInt8]]) throws(Errno) {
    var pending = [path]
    while let path = pending.popLast() {
      let full = Array(([root] + path).joined(separator: [slash]))
      guard try add(full, .part(of: root, path: path)) else { continue }
      for name in Self.directories(in: full) { pending.append(path + [name]) }
    }
  }

  /// - Returns: whether the directory exists and may be watched.
  @discardableResult
  private mutating func add(_ path: [UInt8], _ role: Role) throws(Errno) -> Bool {
    do throws(Errno) {
      let watch = try withCName(path) { name throws(Errno) in try inotify.watch(name, Self.events) }
      // A directory that was moved has its former watch.
      if case .part = role { roles[watch]?.removeAll { if case .part = $0 { true } else { false } } }
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
