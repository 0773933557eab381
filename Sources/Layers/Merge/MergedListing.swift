import Glibc
import Posix

extension MergedDirectory {
  /// Lists the union of the layers' names, by the merge rules. A part that was removed is empty.
  /// - Parameter limit: the most directory entries to read in all parts.
  /// - Throws: EFBIG if there are more; what reading a part throws.
  public func list(atMost limit: Int = .max) throws(Errno) -> Listing {
    var records = 0
    var shown = Listing()
    var hidden = Listing()
    for part in parts {
      var hiddenBelow = Listing()
      let recordsInodes = part.recordsInodes
      try part.forEachEntry { entry throws(Errno) in
        records += 1
        if records > limit { throw .fileTooLarge }
        if WhiteoutMarkers.isMarker(entry.name) {
          // A marker hides its name in the layers below only. Markers do not hide markers.
          let name = entry.name + 4
          hiddenBelow.add(
            name, length: entry.nameLength - 4, kind: .regular, layer: part.layer, device: 0, inode: 0)
          return
        }
        if hidden.index(of: entry.name, length: entry.nameLength) != nil { return }
        if shown.index(of: entry.name, length: entry.nameLength) != nil { return }
        guard let found = try part.listed(entry, recordsInodes: recordsInodes) else { return }
        if found.isWhiteout {
          hiddenBelow.add(
            entry.name, length: entry.nameLength, kind: .regular, layer: part.layer, device: 0, inode: 0)
        } else {
          shown.add(
            entry.name, length: entry.nameLength, kind: found.kind, layer: part.layer,
            device: found.device, inode: found.inode)
        }
      }
      if part.layer == parts[parts.count - 1].layer { break }
      for item in hiddenBelow.items { _ = hidden.add(item, of: hiddenBelow) }
    }
    return shown
  }
}

extension LayerDirectory {
  /// What a listing needs of an entry.
  struct Listed {
    let kind: FileKind
    let device: UInt64
    let inode: UInt64
    let isWhiteout: Bool
  }

  /// Reads the directory; a removed one is empty.
  func forEachEntry(_ body: (DirectoryEntry) throws(Errno) -> Void) throws(Errno) {
    let handle: SharedDescriptor
    switch backing {
    case .descriptor(let real): handle = real
    case .archive(let archive): return try archive.forEachEntry(in: identity.inode, body)
    }
    do throws(Errno) {
      try handle.descriptor.open(".", [.read, .directory]).forEachEntry { entry throws(Errno) in
        // Some file systems count characters instead of bytes; such a name cannot be looked up.
        if entry.nameLength <= 255 { try body(entry) }
      }
    } catch {
      if error != .noSuchFileOrDirectory { throw error }
    }
  }

  /// The entry's kind and inode number, from the directory entry if it is reliable and otherwise by
  /// `stat(2)`; nil if the entry no longer exists.
  func listed(
    _ entry: DirectoryEntry, recordsInodes: Bool
  ) throws(Errno) -> Listed? {
    if let kind = entry.kind, kind == .directory || (kind != .characterDevice && recordsInodes) {
      return Listed(kind: kind, device: identity.device, inode: entry.inode, isWhiteout: false)
    }
    switch try find(entry.name) {
    case .nothing: return nil
    case .whiteout: return Listed(kind: .regular, device: 0, inode: 0, isWhiteout: true)
    case .directory: return Listed(kind: .directory, device: 0, inode: 0, isWhiteout: false)
    case .file(let attributes):
      return Listed(
        kind: attributes.kind ?? .regular, device: attributes.identity.device,
        inode: attributes.identity.inode, isWhiteout: false)
    }
  }

  /// Whether `d_ino` equals `st_ino` on the file system of a directory.
  static func recordsInodes(_ handle: SharedDescriptor) -> Bool {
    guard let type = try? handle.descriptor.fileSystemType() else { return false }
    return Self.recording.contains(type)
  }

  /// ext2/3/4, XFS, Btrfs, tmpfs, F2FS, SquashFS, EROFS: `f_type` of `statfs(2)`.
  private static let recording: Set<Int> = [
    0xEF53, 0x5846_5342, 0x9123_683E, 0x0102_1994, 0xF2F5_2010, 0x7371_7368, 0xE0F5_E1E2,
  ]
}
