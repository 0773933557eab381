import Posix

/// Copies entries of a mount to the layer that is on top of it, with the directories above them and everything below.
public struct TreeCopy {
  /// How many entries that are not directories were met.
  public struct Counts: Sendable {
    /// Those that were copied.
    public var copied = 0
    /// Those that the layer had already.
    public var present = 0
  }

  /// Where copying has failed.
  public struct Fault: Error {
    /// The path in the mount.
    public let path: [[UInt8]]
    /// The reason.
    public let error: Errno
  }

  /// An entry that was made.
  public struct Made {
    /// The path in the mount, whose last name is that of the layer's entry.
    public let path: [[UInt8]]
    /// The attributes that it got.
    public let status: FileStatus
  }

  /// A directory of the mount, the layer's part of it, and the names in it that remain.
  private struct Frame {
    let path: [[UInt8]]
    let source: LayerDirectory
    let target: MergedDirectory
    var names: ArraySlice<[UInt8]>
  }

  private let upper: UpperLayer
  private let root: LayerDirectory
  /// Names in the mount's root that no layer has.
  private let excluded: Set<[UInt8]>
  private let recordsMade: Bool
  /// Is passed the counts, and the number of bytes of the file that is being copied.
  private let progress: (Counts, Int) -> Void
  /// The most attempts where programs replace in the layers what is being copied.
  private static let maxAttempts = 16

  /// What was copied so far.
  public private(set) var counts = Counts()
  /// What could not be copied.
  public private(set) var faults: [Fault] = []
  /// The entries that were made, if they are recorded; each directory before what is in it.
  public private(set) var made: [Made] = []

  /// - Parameters:
  ///   - mount: the mount.
  ///   - excluded: names in the mount's root that no layer has.
  ///   - recordsMade: whether each entry that is made is recorded in ``made``.
  ///   - progress: is passed the counts, and the number of bytes of the file that is being copied.
  public init(
    of mount: DirectoryLayer, to upper: UpperLayer, excluding excluded: Set<[UInt8]>,
    recordsMade: Bool = false, progress: @escaping (Counts, Int) -> Void
  ) {
    root = mount.root
    (self.upper, self.excluded, self.progress) = (upper, excluded, progress)
    self.recordsMade = recordsMade
  }

  /// Copies what is seen at a path. What the layer has already is left alone.
  /// - Throws: if nothing can be copied: ENOENT; ELOOP and ENOTDIR where the path does not lead through directories; EXDEV
  ///   where another file system is mounted; what means that the layer takes no more. Other errors further down become
  ///   ``faults``.
  public mutating func copy(_ path: [[UInt8]]) throws(Fault) {
    var frame = Frame(path: [], source: root, target: MergedDirectory(parts: [upper.layer.root]), names: [])
    for (index, name) in path.enumerated() {
      let found = try Self.naming(path[...index]) { () throws(Errno) in
        try copyEntry(name, in: frame, as: frame.source.spelling(of: name))
      }
      if let found {
        frame = found
      } else if index < path.count - 1 {
        throw Fault(path: Array(path[...index]), error: try kindError(of: name, in: frame, path[...index]))
      } else {
        return
      }
    }
    frame.names = try Self.naming(path[...]) { () throws(Errno) in try names(in: frame.source)[...] }
    try copyBelow(frame, path)
  }

  /// Copies directories without what is in them.
  /// - Returns: the layer's directory at the path.
  /// - Throws: as `copy`; ENOTDIR if the path leads to something else.
  public mutating func copyDirectories(_ path: [[UInt8]]) throws(Fault) -> LayerDirectory {
    var frame = Frame(path: [], source: root, target: MergedDirectory(parts: [upper.layer.root]), names: [])
    for (index, name) in path.enumerated() {
      frame = try Self.naming(path[...index]) { () throws(Errno) in
        switch try withCName(name, { name throws(Errno) in try frame.source.find(name) }) {
        case .nothing, .whiteout: throw .noSuchFileOrDirectory
        case .file: throw .notDirectory
        case .directory: break
        }
        guard let inner = try copyEntry(name, in: frame, as: frame.source.spelling(of: name)) else {
          throw .staleFileHandle
        }
        return inner
      }
    }
    return frame.target.top
  }

  /// Copies all names that are left in the frame, and what is below them.
  private mutating func copyBelow(_ frame: Frame, _ path: [[UInt8]]) throws(Fault) {
    var (frames, path) = ([frame], path)
    while !frames.isEmpty {
      guard let name = frames[frames.count - 1].names.popFirst() else {
        frames.removeLast()
        if !frames.isEmpty { path.removeLast() }
        continue
      }
      path.append(name)
      do throws(Errno) {
        if var inner = try copyEntry(name, in: frames[frames.count - 1]) {
          inner.names = try names(in: inner.source)[...]
          frames.append(inner)
          continue
        }
      } catch {
        let fault = Fault(path: path, error: error)
        if error.meansFullDisk || error == .readOnlyFileSystem || error == .tooManyOpenFiles { throw fault }
        // ENOENT: it was removed meanwhile.
        if error != .noSuchFileOrDirectory { faults.append(fault) }
      }
      path.removeLast()
    }
  }

  /// Copies an entry; of a directory only itself.
  /// - Parameter shown: the spelling of the name in listings.
  /// - Returns: the directory that it is; nil for others.
  private mutating func copyEntry(
    _ name: [UInt8], in frame: Frame, as shown: [UInt8]? = nil
  ) throws(Errno) -> Frame? {
    if frame.source === root, excluded.contains(shown ?? name) { throw .notPermitted }
    return try withCName(name) { name throws(Errno) in
      for _ in 0..<Self.maxAttempts {
        do throws(Errno) {
          switch try frame.source.find(name) {
          case .nothing, .whiteout: throw .noSuchFileOrDirectory
          case .directory(let source, _):
            guard let shown else { return try copyDirectory(name, source, in: frame) }
            return try withCName(shown) { shown throws(Errno) in
              try copyDirectory(shown, source, in: frame)
            }
          case .file(let status):
            try copyFile(name, status.identity, in: frame, as: shown)
            return nil
          }
        } catch {
          // EEXIST: a whiteout has the name, which the mount does not show for long.
          if error != .staleFileHandle && error != .fileExists { throw error }
        }
      }
      throw .staleFileHandle
    }
  }

  private mutating func copyDirectory(
    _ name: CName, _ source: LayerDirectory, in frame: Frame
  ) throws(Errno) -> Frame {
    let (parent, path) = (frame.target, frame.path + [[UInt8](bytesOf: name)])
    if source.identity.device != root.identity.device { throw .crossDeviceLink }
    var found = try parent.lookup(name)
    if found == nil {
      let made = try Self.unlocking(parent.top) { () throws(Errno) in
        try upper.copyUpDirectory(name, from: source, to: parent.top)
      }
      if let made { record(path, made) }
      found = try parent.lookup(name)
    }
    guard case .directory(let target, _) = found else { throw .staleFileHandle }
    // A part of the layer that the mount covers.
    for part in target.parts where part.identity.device == root.identity.device { throw .crossDeviceLink }
    return Frame(path: path, source: source, target: target, names: [])
  }

  /// Copies a file by the name that listings show, unless that is another entry of the name.
  private mutating func copyFile(
    _ name: CName, _ identity: FileIdentity, in frame: Frame, as shown: [UInt8]?
  ) throws(Errno) {
    guard let shown else { return try copyFile(name, identity, in: frame) }
    try withCName(shown) { shown throws(Errno) in
      let isSame = try frame.source.attributes(of: shown).identity == identity
      try copyFile(isSame ? shown : name, identity, in: frame)
    }
  }

  private mutating func copyFile(
    _ name: CName, _ identity: FileIdentity, in frame: Frame
  ) throws(Errno) {
    progress(counts, 0)
    switch try frame.target.lookup(name) {
    case .file: counts.present += 1
    case .directory: throw .staleFileHandle
    case nil:
      var bytes = 0
      let (counts, progress, target) = (counts, progress, frame.target.top)
      let made = try Self.unlocking(target) { () throws(Errno) in
        try upper.copyUp(name, from: frame.source, identity: identity, to: target, size: nil) {
          bytes += $0
          progress(counts, bytes)
        }
      }
      self.counts.copied += 1
      record(frame.path + [[UInt8](bytesOf: name)], made)
    }
  }

  private mutating func record(_ path: [[UInt8]], _ made: FileStatus) {
    if recordsMade { self.made.append(Made(path: path, status: made)) }
  }

  /// Runs the body, which adds to a directory of the layer. It can be a copy of one that nothing may be added to.
  private static func unlocking<Result>(
    _ directory: LayerDirectory, _ body: () throws(Errno) -> Result
  ) throws(Errno) -> Result {
    try directory.withDescriptor { directory throws(Errno) in
      var result: Result?
      try directory.unlocking(".", relocks: true) { () throws(Errno) in result = try body() }
      guard let result else { throw .ioError }
      return result
    }
  }

  private func names(in directory: LayerDirectory) throws(Errno) -> [[UInt8]] {
    let names = try directory.names()
    return directory === root ? names.filter { !excluded.contains($0) } : names
  }

  /// Why an entry that is not a directory cannot be one on the way to another: ELOOP for a symbolic link.
  private func kindError(
    of name: [UInt8], in frame: Frame, _ path: ArraySlice<[UInt8]>
  ) throws(Fault) -> Errno {
    let kind = try Self.naming(path) { () throws(Errno) in
      try withCName(name) { name throws(Errno) in try frame.source.attributes(of: name).kind }
    }
    return kind == .symbolicLink ? .tooManySymbolicLinkLevels : .notDirectory
  }

  private static func naming<Result>(
    _ path: ArraySlice<[UInt8]>, _ body: () throws(Errno) -> Result
  ) throws(Fault) -> Result {
    do throws(Errno) { return try body() } catch { throw Fault(path: Array(path), error: error) }
  }
}
