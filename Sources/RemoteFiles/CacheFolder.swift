import CLibrary
import Posix

/// The folder in which blocks are kept, shared by the mounts of one user.
///
/// It and its files belong to the user alone: entries are opened below one descriptor of the folder, without following
/// links, and those of other owners are not used.
public final class CacheFolder: Sendable {
  private let folder: Descriptor
  /// The bytes that its files may have on disk.
  let limit: UInt64
  private static let suffix = Array(".blocks".utf8)
  /// Seconds after which a file that was not completed is removed.
  private static let longestMaking: Int64 = 3600
  /// Further files are not looked at.
  private static let mostNames = 1 << 16

  /// Makes the folder if it does not exist; those above it must.
  /// - Throws: EPERM if other users may enter it, or if it is another user's.
  public init(_ path: [UInt8], limit: UInt64) throws(Errno) {
    self.limit = limit
    do throws(Errno) {
      try withCName(path) { name throws(Errno) in if mkdir(name, 0o700) != 0 { throw .current } }
    } catch { if error != .fileExists { throw error } }
    folder = try Descriptor.open(path, [.read, .directory, .noFollow])
    let attributes = try folder.attributes()
    guard attributes.owner == geteuid(), attributes.mode & 0o077 == 0 else { throw .notPermitted }
  }

  /// The file of an object's state; another process may use it, too.
  func file(for header: BlockFile.Header) throws(Errno) -> BlockFile {
    let name = Self.name(of: header)
    for _ in 0..<3 {
      if let found = try? open(name), found.header == header { return found }
      try? remove(name)
      if let made = try make(header, name) { return made }
    }
    throw .resourceBusy
  }

  /// The last state of an object that was read; nil if there is none.
  func lastFile(url: (UInt64, UInt64)) -> BlockFile? {
    let prefix = Self.prefix(url)
    let found = names().filter { $0.starts(with: prefix) }.compactMap { try? open($0) }
    return found.filter { $0.header.url == url && $0.header.validator.isPresent }.max { left, right in
      Self.lastUse(of: left.descriptor) < Self.lastUse(of: right.descriptor)
    }
  }

  private func open(_ name: [UInt8]) throws(Errno) -> BlockFile {
    let descriptor = try folder.open(name, [.readWrite, .noFollow, .nonBlocking])
    let attributes = try descriptor.attributes()
    guard attributes.isRegular, attributes.owner == geteuid(), attributes.links == 1,
      attributes.mode & 0o077 == 0, let header = BlockFile.header(of: descriptor)
    else { throw .invalidArgument }
    try? descriptor.setTimes(accessed: nil, modified: .now)
    flock(descriptor.rawValue, LOCK_SH | LOCK_NB)
    return BlockFile(descriptor, header)
  }

  /// - Returns: nil if another process has made it meanwhile.
  private func make(_ header: BlockFile.Header, _ name: [UInt8]) throws(Errno) -> BlockFile? {
    let temporary = Array(".\(UInt64.random(in: 0 ... .max)).new".utf8)
    let file = BlockFile(
      try withCName(temporary) { name throws(Errno) in try folder.createFile(name) }, header)
    flock(file.descriptor.rawValue, LOCK_SH | LOCK_NB)
    do throws(Errno) {
      try file.begin()
      try rename(temporary, to: name)
    } catch {
      try? remove(temporary)
      if error == .fileExists { return nil }
      throw error
    }
    return file
  }

  private func rename(_ old: [UInt8], to new: [UInt8]) throws(Errno) {
    try withCName(old) { old throws(Errno) in
      try withCName(new) { new throws(Errno) in
        do throws(Errno) { try folder.rename(old, to: new, in: folder, .noReplace) } catch {
          // A process that uses the one that is replaced keeps it.
          if error != .invalidArgument { throw error }
          try folder.rename(old, to: new, in: folder, [])
        }
      }
    }
  }

  /// A file without a name, which is gone when it is closed.
  func unnamedFile() throws(Errno) -> Descriptor { try folder.createUnnamedFile(isLinkable: false) }

  private func remove(_ name: [UInt8]) throws(Errno) {
    try withCName(name) { name throws(Errno) in try folder.remove(name, isDirectory: false) }
  }

  // MARK: - Names

  private static func prefix(_ url: (UInt64, UInt64)) -> [UInt8] { Array(hex(url.0).utf8) }

  private static func name(of header: BlockFile.Header) -> [UInt8] {
    let validator = header.validator.entityTag + [0] + header.validator.modified
    let state = mixedHash(
      BlockChecksum.of(validator, seed: header.url.1), header.size, header.isWhole ? 1 : 0, header.url.1)
    return prefix(header.url) + Array(("-" + hex(state)).utf8) + suffix
  }

  private static func hex(_ number: UInt64) -> String {
    let digits = String(number, radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
  }

  /// The names of its files.
  private func names() -> [[UInt8]] {
    guard let copy = try? folder.open([UInt8(ascii: ".")], [.read, .directory]) else { return [] }
    var names: [[UInt8]] = []
    // What was listed before an error counts.
    try? copy.forEachEntry { entry throws(Errno) in
      if names.count == Self.mostNames { throw .fileTooLarge }
      let name = [UInt8](bytesOf: entry.name)
      if name.first != UInt8(ascii: ".") || name.ends(with: Array(".new".utf8)) { names.append(name) }
    }
    return names
  }

  // MARK: - Limit

  /// Removes files that no process has open, the oldest first, while there are more bytes than allowed.
  /// - Returns: how many bytes are too many nevertheless.
  @discardableResult
  func trim() -> UInt64 {
    var files: [(name: [UInt8], used: TimeSpec, bytes: UInt64)] = []
    let now = TimeSpec.now
    for name in names() {
      guard let status = try? withCName(name, { name throws(Errno) in try folder.attributes(of: name) }),
        status.isRegular
      else { continue }
      if name.first == UInt8(ascii: ".") {
        if now.seconds - status.modified.seconds > Self.longestMaking { removeUnused(name) }
      } else if name.ends(with: Self.suffix) {
        files.append((name, status.modified, status.blocks * 512))
      }
    }
    var total = files.reduce(UInt64(0)) { $0 &+ $1.bytes }
    for file in files.sorted(by: { $0.used < $1.used }) where total > limit {
      if removeUnused(file.name) { total -= min(total, file.bytes) }
    }
    return total > limit ? total - limit : 0
  }

  /// Removes a file that no process has locked.
  @discardableResult
  private func removeUnused(_ name: [UInt8]) -> Bool {
    guard let file = try? folder.open(name, [.read, .noFollow, .nonBlocking]),
      flock(file.rawValue, LOCK_EX | LOCK_NB) == 0
    else { return false }
    return (try? remove(name)) != nil
  }

  private static func lastUse(of file: borrowing Descriptor) -> TimeSpec {
    (try? file.attributes())?.modified ?? TimeSpec(seconds: 0, nanoseconds: 0)
  }
}

extension [UInt8] {
  fileprivate func ends(with end: [UInt8]) -> Bool { suffix(end.count).elementsEqual(end) }
}
