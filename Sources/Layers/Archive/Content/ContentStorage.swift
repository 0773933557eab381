import CLibrary
import Posix

/// The decoded bytes of an entry, in memory or in an unlinked file, on disk where that has room.
///
/// `ArchiveContent` ensures that readers and the decoding thread never access the same bytes.
final class ContentStorage: @unchecked Sendable {
  private enum Kind {
    case memory(UnsafeMutableRawBufferPointer)
    case file(SharedDescriptor)
  }
  private let kind: Kind
  /// Whether writing may fail for lack of space although there is memory.
  let isOnDisk: Bool

  static let largestInMemory: UInt64 = 1 << 20

  /// - Parameters:
  ///   - size: bytes; those that are never written take no space.
  ///   - residentLimit: the most bytes that are kept at a time.
  ///   - mayUseFile: false if too many files are open.
  ///   - directories: where to create a file, in order of preference. Where none has room for what is kept, the file
  ///     is in memory: the cache bounds the sum of what all contents keep.
  /// - Throws: ENOMEM, ENOSPC.
  init(
    size: UInt64, residentLimit: UInt64, mayUseFile: Bool, directories: [[UInt8]] = ContentStorage.directories
  ) throws(Errno) {
    if size > Self.largestInMemory, mayUseFile || size > residentLimit {
      if let file = Self.temporaryFile(for: min(size, residentLimit), in: directories) {
        (kind, isOnDisk) = (.file(file), true)
        return
      }
      if let file = try? Descriptor.memory(name: "bundlefs") {
        (kind, isOnDisk) = (.file(SharedDescriptor(file)), false)
        return
      }
    }
    isOnDisk = false
    // In memory, discarded ranges are not returned to the system.
    if size > max(residentLimit, Self.largestInMemory) { throw .noSpace }
    guard size <= UInt64(Int.max), let start = calloc(max(1, Int(size)), 1) else { throw .noMemory }
    kind = .memory(UnsafeMutableRawBufferPointer(start: start, count: Int(size)))
  }

  deinit {
    if case .memory(let buffer) = kind { free(buffer.baseAddress) }
  }

  var isFile: Bool { if case .file = kind { true } else { false } }

  static var directories: [[UInt8]] {
    let chosen = getenv("TMPDIR").map { Array(UnsafeRawBufferPointer(start: $0, count: strlen($0))) }
    return [chosen, Array("/var/tmp".utf8), Array("/tmp".utf8)].compactMap { $0 }.filter { !$0.isEmpty }
  }

  /// A file in the first directory with enough space; nil if there is none.
  private static func temporaryFile(for size: UInt64, in directories: [[UInt8]]) -> SharedDescriptor? {
    for directory in directories {
      let file = try? withCName(directory) { name throws(Errno) in
        SharedDescriptor(try Descriptor.temporary(in: name))
      }
      if let file, let bytes = try? file.descriptor.freeBytes(), bytes >= size { return file }
    }
    return nil
  }

  func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(Errno) {
    switch kind {
    case .memory(let buffer):
      UnsafeMutableRawBufferPointer(rebasing: buffer[Int(offset)...]).copyMemory(from: bytes)
    case .file(let file): try file.descriptor.write(bytes, at: Int64(offset))
    }
  }

  func read(into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64) throws(Errno) {
    switch kind {
    case .memory(let content):
      buffer.copyMemory(
        from: UnsafeRawBufferPointer(rebasing: content[Int(offset)..<Int(offset) + buffer.count]))
    case .file(let file):
      if try file.descriptor.read(into: buffer, at: Int64(offset)) != buffer.count { throw .ioError }
    }
  }

  func discard(_ range: Range<UInt64>) {
    guard case .file(let file) = kind else { return }
    // On file systems without hole punching the space is freed at the end.
    try? file.descriptor.punchHole(at: Int64(range.lowerBound), count: Int64(range.count))
  }
}
