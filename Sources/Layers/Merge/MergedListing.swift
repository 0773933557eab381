import CLibrary
import Posix

extension MergedDirectory {
  /// Lists the union of the layers' names, by the merge rules. A part that was removed is empty.
  /// - Parameter limit: the most directory entries to read in all parts.
  /// - Throws: EFBIG if there are more; what reading a part throws; the error of a layer that failed.
  public func list(atMost limit: Int = .max) throws(Errno) -> Listing {
    var index: NameIndex?
    return try list(atMost: limit, &index)
  }

  /// Lists the union of the layers' names, and makes an index of them unless names fold, or the parts cannot be indexed.
  /// - Throws: as `list`.
  public func listIndexing(atMost limit: Int = .max) throws(Errno) -> (Listing, NameIndex?) {
    var index = !foldsNames && isIndexable ? NameIndex(foldsNames: false) : nil
    let listing = try list(atMost: limit, &index)
    return (listing, index?.trimmed())
  }

  private func list(atMost limit: Int, _ index: inout NameIndex?) throws(Errno) -> Listing {
    var records = 0
    if foldsNames {
      return try listFolded { () throws(Errno) in
        records += 1
        if records > limit { throw .fileTooLarge }
      }
    }
    var shown = Listing()
    var hidden = Listing()
    for (position, part) in parts.enumerated() {
      if part.gate.isSkipped {
        index = nil
        continue
      }
      let isIndexed = index == nil ? false : (try? part.isListedForIndex())
      let hiddenBelow = try part.addEntries(to: &shown, except: hidden) { entry throws(Errno) in
        records += 1
        if records > limit { throw .fileTooLarge }
        if isIndexed == true, index?.add(entry, part: position) == false { index = nil }
      }
      if isIndexed == nil { index = nil } else if isIndexed == false { index?.addUnlisted(position) }
      if part.layer == parts[parts.count - 1].layer { break }
      for item in hiddenBelow.items { _ = hidden.add(item, of: hiddenBelow) }
    }
    if let missing { throw missing.error }
    return shown
  }
}

extension LayerDirectory {
  /// Adds the visible entries of the directory to a listing.
  /// - Parameter count: called for each directory entry.
  /// - Returns: the names of its whiteouts.
  fileprivate func addEntries(
    to shown: inout Listing, except hidden: Listing, _ count: (DirectoryEntry) throws(Errno) -> Void
  ) throws(Errno) -> Listing {
    var whiteouts = Listing()
    try forEachEntry { entry throws(Errno) in
      try count(entry)
      let (name, length) = (entry.name, entry.nameLength)
      if WhiteoutMarker.isMarker(name) {
        // A marker hides its name in the layers below only. Markers do not hide markers.
        whiteouts.add(name + 4, length: length - 4, kind: .regular, layer: layer, device: 0, inode: 0)
        return
      }
      if hidden.index(of: name, length: length) != nil || shown.index(of: name, length: length) != nil {
        return
      }
      guard let found = try listed(entry, recordsInodes: recordsInodes) else { return }
      if found.isWhiteout {
        whiteouts.add(name, length: length, kind: .regular, layer: layer, device: 0, inode: 0)
        let bytes = UnsafeRawBufferPointer(start: name, count: length)
        shown.whiteouts.append(Listing.Whiteout(name: Array(bytes), layer: layer))
      } else {
        shown.add(
          name, length: length, kind: found.kind, layer: layer, device: found.device, inode: found.inode)
      }
    }
    return whiteouts
  }

  struct Listed {
    let kind: FileKind
    let device: UInt64
    let inode: UInt64
    let isWhiteout: Bool
  }

  /// Reads the directory; a removed one is empty. Entries that the view hides are left out, but not whiteout markers.
  func forEachEntry(_ body: (DirectoryEntry) throws(Errno) -> Void) throws(Errno) {
    guard let place else { return try forEachEntryOfLayer(body) }
    try forEachEntryOfLayer { entry throws(Errno) in
      if WhiteoutMarker.isMarker(entry.name) || !place.hides(entry.name) { try body(entry) }
    }
  }

  /// As `forEachEntry`, with the entries that the view hides.
  func forEachEntryOfLayer(_ body: (DirectoryEntry) throws(Errno) -> Void) throws(Errno) {
    let handle: SharedDescriptor
    switch backing {
    case .descriptor(let real): handle = real
    case .archive(let archive): return try archive.forEachEntry(in: identity.inode, body)
    case .above(let folders): return try folders.forEachEntry(in: self, body)
    }
    do throws(Errno) {
      try gate.call { () throws(Errno) in
        try handle.descriptor.open(".", [.read, .directory]).forEachEntry { entry throws(Errno) in
          // Some file systems count characters instead of bytes; such a name cannot be looked up.
          if entry.nameLength <= 255 { try body(entry) }
        }
      }
    } catch {
      if error != .noSuchFileOrDirectory { throw error }
    }
  }

  /// The entry's kind and inode number, from the directory entry if it is reliable and otherwise by
  /// `stat(2)`; nil if the entry no longer exists.
  func listed(_ entry: DirectoryEntry, recordsInodes: Bool) throws(Errno) -> Listed? {
    var isSure = recordsInodes && entry.kind != .characterDevice
    if isSure, entry.kind == .regular { isSure = try !mayHaveAttributeWhiteouts() }
    if let kind = entry.kind, kind == .directory || isSure {
      return Listed(kind: kind, device: identity.device, inode: entry.inode, isWhiteout: false)
    }
    let found: Found
    do throws(Errno) { found = try findExact(entry.name, isLikelyDirectory: false) } catch {
      // Our own mount is listed, but cannot be looked up; neither can what overlayfs keeps in another layer.
      let isReference = error == .ioError && isOverlayReference(entry.name)
      guard error == .tooManySymbolicLinkLevels || isReference else { throw error }
      return Listed(
        kind: entry.kind ?? .regular, device: identity.device, inode: entry.inode, isWhiteout: false)
    }
    switch found {
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
    (try? handle.descriptor.fileSystemType()).map(recording.contains) ?? false
  }

  /// ext2/3/4, XFS, Btrfs, tmpfs, F2FS, SquashFS, EROFS: `f_type` of `statfs(2)`.
  private static let recording: Set<Int> = [
    0xEF53, 0x5846_5342, 0x9123_683E, 0x0102_1994, 0xF2F5_2010, 0x7371_7368, 0xE0F5_E1E2,
  ]
}
