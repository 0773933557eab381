import CLibrary
import Posix

/// File systems that find an entry under other spellings of its name: FAT, directories with ext4's casefold, CIFS,
/// ciopfs, or a mount of ours with `case=insensitive`. Layers that are compared by bytes must not lie there: `X.INI` in
/// one layer would be another file than the `x.ini` below it that it is to override.
extension Descriptor {
  /// How many entries are looked up in another spelling.
  private static let mostProbes = 6
  /// What a mount of ours has even if it is empty, unless options give them other names.
  private static let ownNames = [".routes", "rsrc:"].map { Array($0.utf8) }

  /// Whether the file system folds the names in this directory, which must be open for reading, with its offset at 0. If
  /// the type or a flag does not say so, some entries are looked up in another spelling: without any, it is unknown.
  /// - Throws: errors of getdents64(2) and statx(2).
  public func foldsNames() throws(Errno) -> Bool {
    if FileSystemType.folding.contains(try fileSystemType()) || hasCasefoldFlag() { return true }
    let names = Self.ownNames + (try firstNames())
    let respelled = names.lazy.map { ($0, $0.withCaseSwapped) }.filter { $0 != $1 }
    for (name, other) in respelled.prefix(Self.mostProbes) {
      guard let found = try existing(other), let entry = try existing(name) else { continue }
      // A hard link may have the other spelling.
      if found.identity == entry.identity, entry.isDirectory || entry.links == 1 { return true }
    }
    return false
  }

  private func existing(_ name: [UInt8]) throws(Errno) -> FileStatus? {
    do throws(Errno) {
      return try withCName(name) { name throws(Errno) in try attributes(of: name) }
    } catch {
      if error == .noSuchFileOrDirectory { return nil }
      throw error
    }
  }
}

extension [UInt8] {
  /// The bytes with the case of all ASCII letters changed.
  fileprivate var withCaseSwapped: [UInt8] {
    map { byte in
      let lower = byte | 0x20
      return lower >= UInt8(ascii: "a") && lower <= UInt8(ascii: "z") ? byte ^ 0x20 : byte
    }
  }
}

extension DirectoryLayer {
  /// Whether the file system folds the names in the root, as far as can be found out. One that may not be read is taken
  /// not to. The calls do not pass the gate, as those of `init`: to be asked where the layer was opened.
  public var isFolded: Bool {
    guard !isAbsent, case .descriptor(let handle) = ownRoot.backing else { return false }
    return (try? handle.descriptor.open(".", [.read, .directory]).foldsNames()) ?? false
  }
}
