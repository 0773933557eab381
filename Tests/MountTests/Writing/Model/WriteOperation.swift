import Glibc
import Posix
import TestSupport

/// An operation of a program, with paths relative to a root.
enum WriteOperation {
  /// Opens with `O_CREAT` and the flags, writes and closes.
  case create(ByteString, mode: UInt32, flags: CInt, content: [UInt8])
  /// Opens without `O_CREAT`, with the flags, writes and closes.
  case write(ByteString, flags: CInt, at: Int, content: [UInt8])
  case read(ByteString, at: Int, count: Int)
  case truncate(ByteString, size: Int)
  case allocate(ByteString, mode: CInt, at: Int, count: Int)
  case makeDirectory(ByteString, mode: UInt32)
  case makeNode(ByteString, mode: UInt32)
  case makeLink(ByteString, target: ByteString)
  case makeHardLink(ByteString, of: ByteString)
  case rename(ByteString, to: ByteString, flags: UInt32)
  case unlink(ByteString)
  case removeDirectory(ByteString)
  case setMode(ByteString, UInt32)
  /// `UInt32.max` keeps an ID.
  case setOwner(ByteString, UInt32, group: UInt32)
  /// nil keeps a time.
  case setTimes(ByteString, accessed: TimeSpec?, modified: TimeSpec?)
  case setAttribute(ByteString, ByteString, [UInt8])
  case removeAttribute(ByteString, ByteString)
  case list(ByteString)
  case status(ByteString)
  /// Opens a file and keeps the descriptor.
  case open(slot: Int, ByteString, flags: CInt)
  case held(slot: Int, HeldOperation)

  /// The paths whose entries it may change.
  var paths: [ByteString] {
    switch self {
    case .create(let path, _, _, _), .write(let path, _, _, _), .read(let path, _, _), .truncate(let path, _),
      .allocate(let path, _, _, _), .makeDirectory(let path, _), .makeNode(let path, _),
      .makeLink(let path, _),
      .unlink(let path), .removeDirectory(let path), .setMode(let path, _), .setOwner(let path, _, _),
      .setTimes(let path, _, _), .setAttribute(let path, _, _), .removeAttribute(let path, _),
      .list(let path),
      .status(let path), .open(_, let path, _):
      [path]
    case .makeHardLink(let path, let other), .rename(let path, let other, _): [path, other]
    case .held: []
    }
  }
}

extension WriteOperation {
  /// The same operation with other paths.
  func mapPaths(_ body: (ByteString) -> ByteString) -> WriteOperation {
    switch self {
    case .create(let path, let mode, let flags, let content):
      .create(body(path), mode: mode, flags: flags, content: content)
    case .write(let path, let flags, let offset, let content):
      .write(body(path), flags: flags, at: offset, content: content)
    case .read(let path, let offset, let count): .read(body(path), at: offset, count: count)
    case .truncate(let path, let size): .truncate(body(path), size: size)
    case .allocate(let path, let mode, let offset, let count):
      .allocate(body(path), mode: mode, at: offset, count: count)
    case .makeDirectory(let path, let mode): .makeDirectory(body(path), mode: mode)
    case .makeNode(let path, let mode): .makeNode(body(path), mode: mode)
    case .makeLink(let path, let target): .makeLink(body(path), target: target)
    case .makeHardLink(let path, let other): .makeHardLink(body(path), of: body(other))
    case .rename(let path, let other, let flags): .rename(body(path), to: body(other), flags: flags)
    case .unlink(let path): .unlink(body(path))
    case .removeDirectory(let path): .removeDirectory(body(path))
    default: mapPathsOfAttributes(body)
    }
  }

  private func mapPathsOfAttributes(_ body: (ByteString) -> ByteString) -> WriteOperation {
    switch self {
    case .setMode(let path, let mode): .setMode(body(path), mode)
    case .setOwner(let path, let owner, let group): .setOwner(body(path), owner, group: group)
    case .setTimes(let path, let accessed, let modified):
      .setTimes(body(path), accessed: accessed, modified: modified)
    case .setAttribute(let path, let name, let value): .setAttribute(body(path), name, value)
    case .removeAttribute(let path, let name): .removeAttribute(body(path), name)
    case .list(let path): .list(body(path))
    case .status(let path): .status(body(path))
    case .open(let slot, let path, let flags): .open(slot: slot, body(path), flags: flags)
    default: self
    }
  }
}

/// An operation by a descriptor that is kept.
enum HeldOperation {
  case read(at: Int, count: Int)
  case write(at: Int, [UInt8])
  case append([UInt8])
  case truncate(size: Int)
  case allocate(mode: CInt, at: Int, count: Int)
  case setMode(UInt32)
  case status
  case synchronize
  case close
}

/// The result of an operation, which must be the same for both trees.
enum OperationResult: Equatable, CustomStringConvertible {
  case done
  case content([UInt8])
  case names([ByteString])
  /// Type and permissions, owner, group, size.
  case status([UInt64])
  case failed(Errno)

  var description: String {
    switch self {
    case .done: "done"
    case .content(let bytes): "\(bytes.count) bytes beginning with \(bytes.prefix(8))"
    case .names(let names): "\(names)"
    case .status(let values): "mode, owner, group, size: \(values)"
    case .failed(let error): error.description
    }
  }
}

extension WriteOperation: CustomStringConvertible {
  var description: String {
    switch self {
    case .create(let path, let mode, let flags, let content):
      "create \(path), mode \(octal(mode)), flags \(octal(flags)), \(content.count) bytes"
    case .write(let path, let flags, let offset, let content):
      "write \(path), flags \(octal(flags)), \(content.count) bytes at \(offset)"
    case .read(let path, let offset, let count): "read \(path), \(count) bytes at \(offset)"
    case .truncate(let path, let size): "truncate \(path) to \(size)"
    case .allocate(let path, let mode, let offset, let count):
      "fallocate \(path), mode \(mode), \(count) bytes at \(offset)"
    case .makeDirectory(let path, let mode): "mkdir \(path), mode \(octal(mode))"
    case .makeNode(let path, let mode): "mknod \(path), mode \(octal(mode))"
    case .makeLink(let path, let target): "symlink \(path) -> \(target)"
    case .makeHardLink(let path, let other): "link \(path) = \(other)"
    case .rename(let path, let other, let flags): "rename \(path) to \(other), flags \(flags)"
    case .unlink(let path): "unlink \(path)"
    case .removeDirectory(let path): "rmdir \(path)"
    case .setMode(let path, let mode): "chmod \(octal(mode)) \(path)"
    case .setOwner(let path, let owner, let group): "chown \(owner):\(group) \(path)"
    case .setTimes(let path, let accessed, let modified):
      "utimensat \(path), \(accessed.map { "\($0)" } ?? "-"), \(modified.map { "\($0)" } ?? "-")"
    case .setAttribute(let path, let name, let value): "setxattr \(name) of \(path), \(value.count) bytes"
    case .removeAttribute(let path, let name): "removexattr \(name) of \(path)"
    case .list(let path): "list \(path)"
    case .status(let path): "lstat \(path)"
    case .open(let slot, let path, let flags): "open \(path), flags \(octal(flags)), as descriptor \(slot)"
    case .held(let slot, let operation): "descriptor \(slot): \(operation.description)"
    }
  }

  private func octal(_ number: some BinaryInteger) -> String { String(number, radix: 8) }
}

extension HeldOperation: CustomStringConvertible {
  var description: String {
    switch self {
    case .read(let offset, let count): "read \(count) bytes at \(offset)"
    case .write(let offset, let content): "write \(content.count) bytes at \(offset)"
    case .append(let content): "append \(content.count) bytes"
    case .truncate(let size): "truncate to \(size)"
    case .allocate(let mode, let offset, let count): "fallocate, mode \(mode), \(count) bytes at \(offset)"
    case .setMode(let mode): "fchmod \(String(mode, radix: 8))"
    case .status: "fstat"
    case .synchronize: "fsync"
    case .close: "close"
    }
  }
}
