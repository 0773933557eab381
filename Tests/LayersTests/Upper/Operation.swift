import Posix
import TestSupport

/// A path below the root of a tree; never empty.
typealias TreePath = [ByteString]

extension TreePath {
  var text: ByteString { reduce("") { $0 / $1 } }
}

/// A change of a tree.
enum Operation {
  case make(TreePath, mode: UInt32, device: UInt64, owner: UInt32)
  case makeDirectory(TreePath, mode: UInt32, owner: UInt32)
  case makeSymbolicLink(TreePath, owner: UInt32)
  case link(TreePath, TreePath)
  case remove(TreePath)
  case removeDirectory(TreePath)
  case rename(TreePath, TreePath, flags: UInt32)
  case changeMode(TreePath, UInt32)
  case changeOwner(TreePath, UInt32, group: UInt32)
  case resize(TreePath, Int)
  case write(TreePath, [UInt8], at: Int)
  case setAttribute(TreePath, ByteString, [UInt8])
  case removeAttribute(TreePath, ByteString)
  case setModified(TreePath, Int64)

  /// Where symbolic links point, which never exists.
  static let linkTarget: ByteString = "/nonexistent/bundlefs-tests"

  /// The path whose time the operation sets to the present one.
  var touched: TreePath? {
    switch self {
    case .make(let path, _, _, _), .makeDirectory(let path, _, _), .makeSymbolicLink(let path, _),
      .resize(let path, _), .write(let path, _, _):
      path
    default: nil
    }
  }
}

/// A tree that can be changed.
protocol ChangeableTree {
  func apply(_ operation: Operation) throws
}

/// A directory, changed by system calls.
struct DiskTree: ChangeableTree {
  let root: ByteString

  func apply(_ operation: Operation) throws {
    switch operation {
    case .make(let path, let mode, let device, let owner):
      try act(as: owner) { try at(path).makeNode(mode: mode, device: device) }
    case .makeDirectory(let path, let mode, let owner):
      try act(as: owner) { try at(path).makeDirectory(mode: mode) }
    case .makeSymbolicLink(let path, let owner):
      try act(as: owner) { try at(path).makeLink(to: Operation.linkTarget) }
    case .link(let path, let newPath): try at(newPath).makeHardLink(of: at(path))
    case .remove(let path): try at(path).remove()
    case .removeDirectory(let path): try at(path).removeDirectory()
    case .rename(let path, let newPath, let flags): try at(path).rename(to: at(newPath), flags: flags)
    case .changeMode(let path, let mode): try at(path).setMode(mode)
    case .changeOwner(let path, let owner, let group): try at(path).setOwner(owner, group: group)
    case .resize(let path, let size): try at(path).setSize(size)
    case .write(let path, let bytes, let offset): try at(path).overwrite(bytes, at: offset)
    case .setAttribute(let path, let name, let value): try at(path).setAttribute(name, value)
    case .removeAttribute(let path, let name): try at(path).removeAttribute(name)
    case .setModified(let path, let seconds):
      try at(path).setModified(TimeSpec(seconds: seconds, nanoseconds: 123_456_789))
    }
  }

  private func at(_ path: TreePath) -> ByteString { root / path.text }

  private func act(as owner: UInt32, _ body: () throws -> Void) throws {
    let error = try FileSystemUser.act(as: owner, group: owner) { () throws(Errno) in
      do { return try errorNumber(of: body) } catch { throw .ioError }
    }
    if let error { throw error }
  }
}
