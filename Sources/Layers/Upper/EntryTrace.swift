import Posix

/// By which a later change of what a layer has at a name is noticed, and below it.
public enum EntryTrace: Equatable, Sendable {
  case nothing, whiteout
  case file(Mark)
  /// - Parameter below: all that is in the directory, by paths relative to it; of whiteout markers, too.
  case directory(Mark, below: [[UInt8]: Mark])

  /// By which a later change of an entry is noticed.
  public struct Mark: Equatable, Sendable {
    /// The entry's identity.
    public let identity: FileIdentity
    /// Whether it is a directory. Then only its identity counts: what is in it has marks of its own.
    public let isDirectory: Bool
    private let size: UInt64
    private let modified: TimeSpec?

    /// The mark of an entry with these attributes.
    public init(_ status: FileStatus) {
      (identity, isDirectory) = (status.identity, status.kind == .directory)
      (size, modified) = isDirectory ? (0, nil) : (status.size, status.modified)
    }
  }

  /// The trace of what was made, which becomes that of an entry.
  public init(_ status: FileStatus, below: [[UInt8]: Mark] = [:]) {
    let mark = Mark(status)
    self = mark.isDirectory ? .directory(mark, below: below) : .file(mark)
  }

  /// Without some of the paths in the directory, and what is below these.
  public func leavingOut(_ paths: Set<[UInt8]>) -> EntryTrace {
    guard case .directory(let mark, let below) = self, !paths.isEmpty else { return self }
    let slash = UInt8(ascii: "/")
    return .directory(
      mark,
      below: below.filter { path, _ in
        if paths.contains(path) { return false }
        return !path.indices.contains { path[$0] == slash && paths.contains(Array(path[..<$0])) }
      })
  }
}

extension UpperLayer {
  /// The trace of what this layer has at a name of this spelling.
  public func trace(of name: CName, in parent: LayerDirectory) throws(Errno) -> EntryTrace {
    switch try parent.findExact(name, isLikelyDirectory: false) {
    case .file(let status): return EntryTrace(status)
    case .whiteout: return .whiteout
    case .directory(let directory, let status): return EntryTrace(status, below: try directory.marksBelow())
    case .nothing:
      return try hasMarker(of: name, in: parent) ? .whiteout : .nothing
    }
  }

  /// The trace of what was taken away, where no other program finds it.
  public func trace(of taken: TakenEntry) throws(Errno) -> EntryTrace {
    guard let entry = taken.entry else { return taken.marker == nil ? .nothing : .whiteout }
    let folder = try layer.gate.call { () throws(Errno) in
      let handle = try work.withFolder { folder throws(Errno) in
        SharedDescriptor(try folder.open(".", [.read, .directory]))
      }
      return LayerDirectory(
        gate: layer.gate, handle: handle, attributes: try handle.descriptor.attributes(), covered: nil,
        recordsInodes: false)
    }
    return try withCName(entry) { entry throws(Errno) in try trace(of: entry, in: folder) }
  }

  /// Removes an entry that has this mark; a directory only if it is empty. The times of the parent stay.
  /// - Throws: ESTALE if it has another one; ENOTEMPTY.
  public func remove(_ name: CName, marked mark: EntryTrace.Mark, from parent: LayerDirectory) throws(Errno) {
    try changing(parent) { (parent, times) throws(Errno) in
      guard EntryTrace.Mark(try parent.attributes(of: name)) == mark else { throw .staleFileHandle }
      if mark.isDirectory {
        try parent.remove(name, isDirectory: true)
      } else {
        try removeFile(name, marked: mark, from: parent)
      }
      try? parent.setTimes(accessed: .at(times.accessed), modified: .at(times.modified))
    }
  }

  /// Moves the file aside and looks again: no other one can take its place then before it is removed.
  private func removeFile(
    _ name: CName, marked mark: EntryTrace.Mark, from parent: borrowing Descriptor
  ) throws(Errno) {
    guard let aside = try setAside(name, in: parent) else { return }
    try withCName(aside) { aside throws(Errno) in
      try work.withFolder { folder throws(Errno) in
        if EntryTrace.Mark(try folder.attributes(of: aside)) == mark {
          return try folder.remove(aside, isDirectory: false)
        }
        try folder.renameNew(aside, to: name, in: parent)
        throw .staleFileHandle
      }
    }
  }
}

extension LayerDirectory {
  /// The marks of all entries in this directory and below, whiteouts included, by paths. Other file systems that are mounted
  /// there are not entered.
  func marksBelow() throws(Errno) -> [[UInt8]: EntryTrace.Mark] {
    var marks: [[UInt8]: EntryTrace.Mark] = [:]
    var pending: [(directory: LayerDirectory, path: [UInt8])] = [(self, [])]
    while let (directory, path) = pending.popLast() {
      for name in try directory.names() {
        let inner = path.isEmpty ? name : path + [UInt8(ascii: "/")] + name
        try withCName(name) { name throws(Errno) in
          let mark = EntryTrace.Mark(try directory.attributesExact(of: name))
          marks[inner] = mark
          guard mark.isDirectory, mark.identity.device == identity.device,
            case .directory(let next, _) = try directory.findExact(name, isLikelyDirectory: true)
          else { return }
          pending.append((next, inner))
        }
      }
    }
    return marks
  }
}
