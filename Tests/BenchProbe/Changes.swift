import Glibc
import Posix

/// A way to change a file or directory, and to write to a file.
enum Change: String {
  /// A new file of 4 KiB.
  case create
  /// 4 KiB more at the end of a file.
  case append
  /// 4 KiB in place of those at a file's beginning.
  case overwrite
  case rename
  /// Removes what `rename` has renamed.
  case unlink
  case mkdir
  /// A new file, in writes of 1 MiB; the cost is per MiB.
  case blocks
  /// A new file, in writes of 4 KiB; the cost is per MiB.
  case pages
  /// The first byte of an existing file `large`.
  case first

  private static let page = 4096
  private static let megabyte = 1 << 20

  /// Makes changes in the working directory.
  /// - Parameter count: the number of files or directories, or of MiB.
  func cost(count: Int) throws(Failure) -> Cost {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.megabyte, alignment: Self.page)
    defer { buffer.deallocate() }
    for index in buffer.indices { buffer[index] = UInt8(truncatingIfNeeded: index &* 31) }
    let bytes = UnsafeRawBufferPointer(buffer)
    return try Cost { () throws(Failure) in
      switch self {
      case .blocks: try Self.write(bytes, megabytes: count, to: "blocks")
      case .pages:
        try Self.write(UnsafeRawBufferPointer(rebasing: bytes[..<Self.page]), megabytes: count, to: "pages")
      case .first:
        try Self.write(UnsafeRawBufferPointer(rebasing: bytes[..<1]), to: "large", O_WRONLY)
        return 1
      default:
        let page = UnsafeRawBufferPointer(rebasing: bytes[..<Self.page])
        for number in 0..<count { try change("\(number)", page) }
      }
      return count
    }
  }

  private func change(_ name: String, _ page: UnsafeRawBufferPointer) throws(Failure) {
    switch self {
    case .create: try Self.write(page, to: name, O_WRONLY | O_CREAT | O_EXCL)
    case .append: try Self.write(page, to: name, O_WRONLY | O_APPEND)
    case .overwrite: try Self.write(page, to: name, O_WRONLY)
    case .rename: try Self.check(Glibc.rename(name, "renamed" + name), name)
    case .unlink: try Self.check(Glibc.unlink("renamed" + name), name)
    case .mkdir: try Self.check(Glibc.mkdir("folder" + name, 0o755), name)
    case .blocks, .pages, .first: throw Failure("\(rawValue) makes no files")
    }
  }

  private static func write(
    _ bytes: UnsafeRawBufferPointer, to name: String, _ flags: CInt
  ) throws(Failure) {
    let file = open(name, flags, 0o644)
    try check(file, name)
    defer { close(file) }
    try write(bytes, file, name)
  }

  private static func write(
    _ bytes: UnsafeRawBufferPointer, megabytes: Int, to name: String
  ) throws(Failure) {
    let file = open(name, O_WRONLY | O_CREAT | O_EXCL, 0o644)
    try check(file, name)
    defer { close(file) }
    for _ in 0..<megabytes * (megabyte / bytes.count) { try write(bytes, file, name) }
  }

  private static func write(_ bytes: UnsafeRawBufferPointer, _ file: CInt, _ name: String) throws(Failure) {
    let count = Glibc.write(file, bytes.baseAddress, bytes.count)
    guard count == bytes.count else { throw Failure(refused: name) }
  }

  private static func check(_ result: CInt, _ name: String) throws(Failure) {
    if result < 0 { throw Failure(refused: name) }
  }
}
