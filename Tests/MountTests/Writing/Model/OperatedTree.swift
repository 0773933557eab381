import Glibc
import Posix
import TestSupport

/// A tree in which operations are made, and the descriptors that are kept in it.
final class OperatedTree {
  let root: ByteString
  private var held: [Int: CInt] = [:]
  /// The paths that the kept files were opened by.
  private(set) var heldPaths: [Int: ByteString] = [:]

  init(_ root: ByteString) { self.root = root }

  deinit { closeAll() }

  func closeAll() {
    for file in held.values { close(file) }
    held = [:]
  }

  /// The descriptors that are open.
  var slots: [Int] { held.keys.sorted() }

  /// Makes an operation as a user.
  func perform(_ operation: WriteOperation, as user: UInt32) throws -> OperationResult {
    var result = OperationResult.done
    let error = try errorNumber { try asFileSystemUser(user) { result = try perform(operation) } }
    return error.map { .failed($0) } ?? result
  }

  private func perform(_ operation: WriteOperation) throws -> OperationResult {
    switch operation {
    case .create(let path, let mode, let flags, let content):
      try withFile(path, O_CREAT | flags, mode) { try Self.write(content, to: $0, at: nil) }
    case .write(let path, let flags, let offset, let content):
      try withFile(path, flags) {
        try Self.write(content, to: $0, at: flags & O_APPEND != 0 ? nil : offset)
      }
    case .read(let path, let offset, let count):
      return try withFile(path, O_RDONLY) { .content(try Self.read($0, at: offset, count)) }
    case .truncate(let path, let size): try (root / path).setSize(size)
    case .allocate(let path, let mode, let offset, let count):
      try withFile(path, O_WRONLY) { try ByteString.allocate($0, mode: mode, at: offset, count: count) }
    case .open(let slot, let path, let flags): try open(slot, path, flags)
    case .held(let slot, let operation): return try perform(operation, slot)
    default: return try performOnNames(operation)
    }
    return .done
  }

  private func performOnNames(_ operation: WriteOperation) throws -> OperationResult {
    switch operation {
    case .makeDirectory(let path, let mode): try (root / path).makeDirectory(mode: mode)
    case .makeNode(let path, let mode): try (root / path).makeNode(mode: mode)
    case .makeLink(let path, let target): try (root / path).makeLink(to: target)
    case .makeHardLink(let path, let other): try (root / path).makeHardLink(of: root / other)
    case .rename(let path, let other, let flags):
      if flags == 0 {
        try (root / path).rename(to: root / other)
      } else {
        try (root / path).rename(to: root / other, flags: flags)
      }
    case .unlink(let path): try (root / path).remove()
    case .removeDirectory(let path): try (root / path).removeDirectory()
    case .list(let path): return .names(try (root / path).names())
    case .status(let path): return .status(Self.values(try (root / path).status()))
    default: try performOnAttributes(operation)
    }
    return .done
  }

  private func performOnAttributes(_ operation: WriteOperation) throws {
    switch operation {
    case .setMode(let path, let mode): try (root / path).setMode(mode)
    case .setOwner(let path, let owner, let group): try (root / path).setOwner(owner, group: group)
    case .setTimes(let path, let accessed, let modified):
      let times = [Self.time(accessed), Self.time(modified)]
      try (root / path).call("utimensat") { utimensat(AT_FDCWD, $0, times, AT_SYMLINK_NOFOLLOW) }
    case .setAttribute(let path, let name, let value): try (root / path).setAttribute(name, value)
    case .removeAttribute(let path, let name): try (root / path).removeAttribute(name)
    default: throw TestFailure("\(operation) is not implemented")
    }
  }

  // MARK: - Descriptors

  private func open(_ slot: Int, _ path: ByteString, _ flags: CInt) throws {
    held[slot] = try (root / path).call("open") {
      Glibc.open($0, flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
    }
    heldPaths[slot] = path
  }

  /// Whether a descriptor's directory has no name any more.
  func isRemovedDirectory(_ slot: Int) -> Bool {
    guard let file = held[slot], let status = try? ByteString.status(of: file) else { return false }
    return status.kind == .directory && status.links == 0
  }

  private func perform(_ operation: HeldOperation, _ slot: Int) throws -> OperationResult {
    guard let file = held[slot] else { return .failed(.badFileDescriptor) }
    switch operation {
    case .read(let offset, let count): return .content(try Self.read(file, at: offset, count))
    case .write(let offset, let content): try Self.write(content, to: file, at: offset)
    case .append(let content): try Self.write(content, to: file, at: nil)
    case .truncate(let size): try Self.check("ftruncate", ftruncate(file, off_t(size)))
    case .allocate(let mode, let offset, let count):
      try ByteString.allocate(file, mode: mode, at: offset, count: count)
    case .setMode(let mode): try Self.check("fchmod", fchmod(file, mode))
    case .status: return .status(Self.values(try ByteString.status(of: file)))
    case .synchronize: try Self.check("fsync", fsync(file))
    case .close:
      held[slot] = nil
      try Self.check("close", close(file))
    }
    return .done
  }

  // MARK: - Calls

  private func withFile<Result>(
    _ path: ByteString, _ flags: CInt, _ mode: UInt32 = 0, _ body: (CInt) throws -> Result
  ) throws -> Result {
    let flags = flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC
    let file = try (root / path).call("open") { Glibc.open($0, flags, mode) }
    defer { close(file) }
    return try body(file)
  }

  /// Writes everything, as programs do: a short write is followed by another one.
  /// - Parameter offset: nil for the file's own.
  private static func write(_ content: [UInt8], to file: CInt, at offset: Int?) throws {
    var done = 0
    while done < content.count {
      let count = content[done...].withUnsafeBytes { bytes in
        offset.map { pwrite(file, bytes.baseAddress, bytes.count, off_t($0 + done)) }
          ?? Glibc.write(file, bytes.baseAddress, bytes.count)
      }
      try check("write", count)
      done += count
    }
  }

  private static func read(_ file: CInt, at offset: Int, _ count: Int) throws -> [UInt8] {
    var buffer = [UInt8](repeating: 0, count: count)
    let read = try ByteString.readPart(&buffer, of: file, at: Int64(offset))
    return Array(buffer[..<read])
  }

  private static func check(_ call: String, _ result: some SignedInteger) throws {
    if result < 0 { throw DiskError(call, "", .current) }
  }

  /// A directory's size is that of its layer's directory.
  private static func values(_ status: StatResult) -> [UInt64] {
    let size = status.kind == .directory ? 0 : UInt64(status.size)
    return [
      UInt64(status.kind?.rawValue ?? 0) | UInt64(status.permissions), UInt64(status.owner),
      UInt64(status.group),
      size,
    ]
  }

  private static func time(_ time: TimeSpec?) -> timespec {
    guard let time else { return timespec(tv_sec: 0, tv_nsec: (1 << 30) - 2) }  // UTIME_OMIT
    return timespec(tv_sec: Int(time.seconds), tv_nsec: Int(time.nanoseconds))
  }
}
