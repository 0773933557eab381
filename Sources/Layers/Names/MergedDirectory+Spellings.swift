import Posix

/// The spellings of a merged directory whose top part takes changes.
extension MergedDirectory {
  /// Calls the body with the spelling in which a change reaches the entry that a name finds: that of the top layer's entry, or
  /// else the one that a listing shows, in which the top layer is to get a copy. A name that is not visible stays as it is.
  /// - Parameter body: is passed this directory, too, on top of it the part that has the entry, or is to get it.
  /// - Throws: what reading a part throws; what the body throws.
  public func withPresentSpelling<Result: ~Copyable>(
    of name: CName, _ body: (CName, MergedDirectory) throws(Errno) -> Result
  ) throws(Errno) -> Result {
    if !foldsNames { return try body(name, self) }
    let (present, directory) = try presentSpelling(of: [UInt8](bytesOf: name))
    return try withCName(present) { name throws(Errno) in try body(name, directory) }
  }

  /// As `withPresentSpelling`.
  public func presentSpelling(
    of name: [UInt8]
  ) throws(Errno) -> (name: [UInt8], directory: MergedDirectory) {
    if !foldsNames { return (name, self) }
    let range = 0..<end(ofLayerAt: 0)
    // The names need not be read again, which have changed if the entry is new.
    for part in parts[range] where try part.hasEntry(name) { return (name, beginning(with: part)) }
    if let own = try entries(named: name, in: range).first { return (own.name, beginning(with: own.parent)) }
    return (try shownSpelling(of: name) ?? name, self)
  }

  private func beginning(with part: LayerDirectory) -> MergedDirectory {
    if part === top { return self }
    return MergedDirectory(parts: [part] + parts.filter { $0 !== part }, missing: missing)
  }
}

extension UpperLayer {
  /// The spelling that a listing would show in place of a new entry's: the one that the layers below show, unless this layer
  /// has a whiteout for it.
  /// - Throws: what reading a layer throws.
  public func spellingToHide(
    behind name: CName, in directory: MergedDirectory
  ) throws(Errno) -> [UInt8]? {
    let below = directory.partsBelow
    guard directory.foldsNames, !below.isEmpty else { return nil }
    let name = [UInt8](bytesOf: name)
    guard let shown = try MergedDirectory(parts: Array(below)).shownSpelling(of: name), shown != name else {
      return nil
    }
    let isHidden = try directory.top.withDescriptor { parent throws(Errno) in
      try withCName(shown) { shown throws(Errno) in
        if try parent.hasDeviceWhiteout(shown) { return true }
        return try whiteouts.hasMarker(of: shown, in: parent)
      }
    }
    return isHidden ? nil : shown
  }

  /// Makes a whiteout for a spelling beside an entry of another spelling.
  /// - Throws: EEXIST if this layer has an entry of the spelling.
  public func hide(_ spelling: [UInt8], in directory: MergedDirectory) throws(Errno) {
    try directory.top.withDescriptor { parent throws(Errno) in
      try withCName(spelling) { spelling throws(Errno) in try makeWhiteout(spelling, in: parent) }
    }
  }
}
