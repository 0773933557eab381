import Glibc
import Posix
import TestSupport

@testable import Layers

/// Layers, changed through an `UpperLayer` as a file system would: it resolves paths, and copies up what it changes.
struct UpperTree: ChangeableTree {
  let paths: [ByteString]
  let stack: LayerStack
  let upper: UpperLayer

  /// - Parameter paths: the layers, top first.
  init(_ paths: [ByteString]) throws {
    self.paths = paths
    let layers = try paths.enumerated().map { index, path in
      try DirectoryLayer(path: path.bytes, index: index, covered: nil, isWritable: index == 0)
    }
    stack = LayerStack(layers: layers)
    upper = try UpperLayer(layers[0])
  }

  func apply(_ operation: Operation) throws {
    switch operation {
    case .make(let path, let mode, let device, let owner):
      try create(path) { name, parent throws(Errno) in
        try upper.makeNode(name, in: parent, mode: mode, device: device, entryOwner(owner))
      }
    case .makeDirectory(let path, let mode, let owner):
      try create(path) { name, parent throws(Errno) in
        try upper.makeDirectory(name, in: parent, mode: mode, entryOwner(owner))
      }
    case .makeSymbolicLink(let path, let owner):
      try create(path) { name, parent throws(Errno) in
        try withCName(Operation.linkTarget.bytes) { target throws(Errno) in
          try upper.makeSymbolicLink(name, in: parent, target: target, entryOwner(owner))
        }
      }
    case .link(let path, let newPath): try link(path, newPath)
    case .remove(let path):
      try create(path) { name, parent throws(Errno) in try upper.remove(name, from: parent) }
    case .removeDirectory(let path):
      try create(path) { name, parent throws(Errno) in try upper.removeDirectory(name, from: parent) }
    case .rename(let path, let newPath, let flags): try rename(path, newPath, RenameFlags(rawValue: flags))
    default: try applyChange(operation)
    }
  }

  private func applyChange(_ operation: Operation) throws(Errno) {
    switch operation {
    case .changeMode(let path, let mode): try change(path) { $0.permissions = mode }
    case .changeOwner(let path, let owner, let group):
      try change(path) { ($0.owner, $0.group) = (owner, group) }
    case .resize(let path, let size): try change(path, size: UInt64(size)) { $0.size = UInt64(size) }
    case .setModified(let path, let seconds):
      let time = AttributeChanges.Time.at(TimeSpec(seconds: seconds, nanoseconds: 123_456_789))
      try change(path) { ($0.accessed, $0.modified) = (time, time) }
    case .write(let path, let bytes, let offset):
      guard case .file(let file) = try open(path) else { throw .isDirectory }
      let written = try file.reopened(.write).write(bytes, at: Int64(offset))
      if written != bytes.count { throw .ioError }
    case .setAttribute(let path, let name, let value): try setAttribute(name, value, of: path)
    case .removeAttribute(let path, let name):
      let opened = try openOwn(path)
      try withCName(name.bytes) { name throws(Errno) in
        switch opened {
        case .file(let file): try file.removeExtendedAttribute(name)
        case .directory(let directory): try directory.removeExtendedAttribute(name)
        }
      }
    default: throw .noFunction
    }
  }

  private func entryOwner(_ id: UInt32) -> EntryOwner { EntryOwner(user: id, group: id, umask: 0) }

  private func setAttribute(_ name: ByteString, _ value: [UInt8], of path: TreePath) throws(Errno) {
    let opened = try openOwn(path)
    try withCName(name.bytes) { name throws(Errno) in
      try value.withBytes { value throws(Errno) in
        switch opened {
        case .file(let file): try file.setExtendedAttribute(name, value, flags: 0)
        case .directory(let directory): try directory.setExtendedAttribute(name, value, flags: 0)
        }
      }
    }
  }

  private func change(
    _ path: TreePath, size: UInt64? = nil, _ fill: (inout AttributeChanges) -> Void
  ) throws(Errno) {
    var changes = AttributeChanges()
    fill(&changes)
    switch try openOwn(path, size: size) {
    case .file(let file): try file.change(changes)
    case .directory(let directory): try directory.change(changes)
    }
  }

  // MARK: - Entries

  private func create(
    _ path: TreePath, _ body: (CName, MergedDirectory) throws(Errno) -> Void
  ) throws(Errno) {
    let parent = try ownParent(of: path)
    try withCName(path[path.count - 1].bytes) { name throws(Errno) in try body(name, parent) }
  }

  private func link(_ path: TreePath, _ newPath: TreePath) throws(Errno) {
    guard let source = try lookup(path) else { throw .noSuchFileOrDirectory }
    if try lookup(newPath) != nil { throw .fileExists }
    if case .directory = source { throw .notPermitted }
    let parent = try ownParent(of: newPath)
    guard case .file(let file) = try openOwn(path) else { throw .notPermitted }
    try withCName(newPath[newPath.count - 1].bytes) { name throws(Errno) in
      try upper.makeLink(name, in: parent, to: file)
    }
  }

  /// Checks what the kernel checks before a file system is asked.
  private func rename(_ path: TreePath, _ newPath: TreePath, _ flags: RenameFlags) throws(Errno) {
    _ = try (self.parent(of: path), self.parent(of: newPath))
    let (source, target) = (try lookup(path), try lookup(newPath))
    guard let source else { throw .noSuchFileOrDirectory }
    if flags == .noReplace, target != nil { throw .fileExists }
    if flags == .exchange, target == nil { throw .noSuchFileOrDirectory }
    if newPath.count > path.count, newPath.starts(with: path) { throw .invalidArgument }
    if path.count > newPath.count, path.starts(with: newPath) {
      throw flags == .exchange ? .invalidArgument : .directoryNotEmpty
    }
    if path == newPath { return }
    if case .file = source { _ = try openOwn(path) }
    if flags == .exchange, case .file = target { _ = try openOwn(newPath) }
    let (parent, newParent) = (try ownParent(of: path), try ownParent(of: newPath))
    try withCName(path[path.count - 1].bytes) { name throws(Errno) in
      try withCName(newPath[newPath.count - 1].bytes) { newName throws(Errno) in
        try upper.rename(name, in: parent, to: newName, in: newParent, flags)
      }
    }
  }

  // MARK: - Paths

  /// The parent of a path, with a part in the upper layer.
  func ownParent(of path: TreePath) throws(Errno) -> MergedDirectory {
    try parent(of: path, isOwn: true)
  }

  func parent(of path: TreePath, isOwn: Bool = false) throws(Errno) -> MergedDirectory {
    try directory(path.dropLast(), isOwn: isOwn)
  }

  private func directory(_ path: ArraySlice<ByteString>, isOwn: Bool) throws(Errno) -> MergedDirectory {
    var directory = try stack.root()
    for name in path {
      directory = try withCName(name.bytes) { name throws(Errno) in
        if isOwn { try copyUpDirectory(name, in: directory) }
        switch try directory.lookup(name) {
        case nil: throw .noSuchFileOrDirectory
        case .directory(let next, _): return next
        // Links point nowhere.
        case .file(_, let attributes):
          throw attributes.kind == .symbolicLink ? .noSuchFileOrDirectory : .notDirectory
        }
      }
    }
    return directory
  }

  private func copyUpDirectory(_ name: CName, in parent: MergedDirectory) throws(Errno) {
    guard case .directory(let next, _) = try parent.lookup(name), next.top.layer != 0 else { return }
    try upper.copyUpDirectory(name, from: next.top, to: parent.top)
  }

  func lookup(_ path: TreePath) throws(Errno) -> Entry? {
    let parent = try parent(of: path)
    return try withCName(path[path.count - 1].bytes) { name throws(Errno) in try parent.lookup(name) }
  }

  enum Opened {
    case file(LayerFile)
    case directory(LayerDirectory)
  }

  /// Opens an entry of the upper layer with `O_PATH`, after it was copied up.
  func openOwn(_ path: TreePath, size: UInt64? = nil) throws(Errno) -> Opened {
    if try lookup(path) == nil { throw .noSuchFileOrDirectory }
    let parent = try ownParent(of: path)
    return try withCName(path[path.count - 1].bytes) { name throws(Errno) in
      try copyUpDirectory(name, in: parent)
      switch try parent.lookup(name) {
      case nil: throw .noSuchFileOrDirectory
      case .directory(let directory, _): return .directory(directory.top)
      case .file(let layer, var attributes):
        if layer != 0, let source = parent.parts(of: layer).first {
          attributes = try upper.copyUp(
            name, from: source, identity: attributes.identity, to: parent.top, size: size)
        }
        return .file(try parent.top.openPath(name, identity: attributes.identity))
      }
    }
  }

  private func open(_ path: TreePath) throws(Errno) -> Opened { try openOwn(path) }
}

extension LayerFile {
  /// Writes an array.
  func write(_ bytes: [UInt8], at offset: Int64) throws(Errno) -> Int {
    try bytes.withBytes { bytes throws(Errno) in try write(bytes, at: offset, appends: false) }
  }
}
