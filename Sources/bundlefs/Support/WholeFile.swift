import Glibc
import Posix

/// A file that is replaced as a whole: a reader finds the former content or the new one.
final class WholeFile {
  /// The files that this process has begun; several threads may write one of the same name.
  private static let count = Locked(0)

  private let directory: Descriptor
  private let name: [UInt8]
  private let temporary: [UInt8]
  private let file: Descriptor
  private var size: Int64 = 0
  private var isPlaced = false

  /// Begins an empty file beside the one that it will replace.
  /// - Parameters:
  ///   - path: of the file, which need not exist; its symbolic links are followed.
  ///   - mode: the permission bits of the new one.
  /// - Throws: EINVAL where something else than a file is; errors of open(2).
  init(_ path: [UInt8], mode: UInt32 = 0o644) throws(Errno) {
    let path = MountOptions.resolved(path)
    let (folder, name) = path.folderAndName
    directory = try Descriptor.open(folder, [.read, .directory])
    self.name = name
    if let present = try? directory.open(name, [.pathOnly, .noFollow]).attributes(), !present.isRegular {
      throw present.isDirectory ? .isDirectory : .invalidArgument
    }
    // Collectors of metrics read only names with a suffix of theirs, and listings leave names with a dot out.
    let number = Self.count.withLock { count in
      count += 1
      return count
    }
    temporary = [UInt8(ascii: ".")] + name + Array(".\(getpid())-\(number)".utf8)
    file = try Self.create(temporary, in: directory, mode)
  }

  /// - Throws: EEXIST unless the present file was left by a process that was killed, which had the same number.
  private static func create(
    _ name: [UInt8], in directory: borrowing Descriptor, _ mode: UInt32
  ) throws(Errno) -> Descriptor {
    try withCName(name) { name throws(Errno) in
      do throws(Errno) { return try directory.createFile(name, mode: mode) } catch {
        guard error == .fileExists else { throw error }
        try directory.remove(name, isDirectory: false)
        return try directory.createFile(name, mode: mode)
      }
    }
  }

  deinit {
    if isPlaced { return }
    try? withCName(temporary) { name throws(Errno) in try directory.remove(name, isDirectory: false) }
  }

  func append(_ text: String) throws(Errno) { try append(Array(text.utf8)) }

  func append(_ bytes: [UInt8]) throws(Errno) {
    try bytes.withBytes { bytes throws(Errno) in try file.write(bytes, at: size) }
    size += Int64(bytes.count)
  }

  /// Gives the file its name.
  /// - Parameter replacing: whether it may replace another one; otherwise EEXIST is thrown.
  func place(replacing: Bool = true) throws(Errno) {
    try withCName(temporary) { temporary throws(Errno) in
      try withCName(name) { name throws(Errno) in
        try directory.rename(temporary, to: name, in: directory, replacing ? [] : .noReplace)
      }
    }
    isPlaced = true
  }
}
