import Posix

/// The spellings of a merged directory whose top part takes changes.
extension MergedDirectory {
  /// Calls the body with the spelling in which a change reaches the entry that a name finds: that of the top part's entry, or
  /// else the one that a listing shows, in which the top part is to get a copy. A name that is not visible stays as it is.
  /// - Throws: what reading a part throws; what the body throws.
  public func withPresentSpelling<Result: ~Copyable>(
    of name: CName, _ body: (CName) throws(Errno) -> Result
  ) throws(Errno) -> Result {
    if !foldsNames { return try body(name) }
    return try withCName(try presentSpelling(of: [UInt8](bytesOf: name)), body)
  }

  /// As `withPresentSpelling`.
  public func presentSpelling(of name: [UInt8]) throws(Errno) -> [UInt8] {
    if !foldsNames { return name }
    // The names need not be read again, which have changed if the entry is new.
    if try top.hasEntry(name) { return name }
    if let own = try top.spelling(of: name) { return own }
    return try shownSpelling(of: name) ?? name
  }
}

extension UpperLayer {
  /// The spelling that a listing would show in place of a new entry's: the one that the layers below show, unless this layer
  /// has a whiteout for it.
  /// - Throws: what reading a layer throws.
  public func spellingToHide(
    behind name: CName, in directory: MergedDirectory
  ) throws(Errno) -> [UInt8]? {
    guard directory.foldsNames, directory.parts.count > 1 else { return nil }
    let (name, below) = ([UInt8](bytesOf: name), MergedDirectory(parts: Array(directory.parts.dropFirst())))
    guard let shown = try below.shownSpelling(of: name), shown != name else { return nil }
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
