import Posix

extension Descriptor {
  /// Runs the body, which changes the entries of this directory, and restores the directory's times, since what is seen
  /// has not changed.
  func keepingTimes(_ body: () throws(Errno) -> Void) throws(Errno) {
    let former = try attributes()
    try body()
    // The body has succeeded in any case.
    try? setTimes(accessed: .at(former.accessed), modified: .at(former.modified))
  }

  /// The names of all entries of this directory, which may be opened in any way.
  func entryNames() throws(Errno) -> [[UInt8]] {
    var names: [[UInt8]] = []
    try open(".", [.read, .directory]).forEachEntry { entry throws(Errno) in
      names.append([UInt8](bytesOf: entry.name))
    }
    return names
  }

  /// Removes an entry, of any kind, that need not exist.
  /// - Returns: false for a directory that is not empty.
  func removeEntry(_ name: [UInt8]) throws(Errno) -> Bool {
    try withCName(name) { name throws(Errno) in try removeEntry(name) }
  }

  /// As `removeEntry`.
  func removeEntry(_ name: CName) throws(Errno) -> Bool {
    for isDirectory in [false, true] {
      do throws(Errno) {
        try remove(name, isDirectory: isDirectory)
        return true
      } catch {
        if error == .noSuchFileOrDirectory { return true }
        if isDirectory, error == .directoryNotEmpty || error == .fileExists { return false }
        // POSIX: EPERM for a directory.
        let mayBeDirectory = !isDirectory && (error == .isDirectory || error == .notPermitted)
        if !mayBeDirectory { throw error == .notDirectory ? .notPermitted : error }
      }
    }
    return false
  }

  /// Runs the body, which moves or empties a directory of this one. Without privileges, that takes the permission to write
  /// to it, which its owner can have given up.
  /// - Parameter relocks: whether the directory stays.
  func unlocking(
    _ name: CName, relocks: Bool = false, _ body: () throws(Errno) -> Void
  ) throws(Errno) {
    do throws(Errno) { return try body() } catch {
      if error != .permissionDenied { throw error }
    }
    guard let directory = try? open(name, [.pathOnly, .directory, .noFollow]),
      let mode = try? directory.attributes().mode, (try? directory.changeMode(mode | 0o700)) != nil
    else { throw .permissionDenied }
    do throws(Errno) { try body() } catch {
      try? directory.changeMode(mode)
      throw error
    }
    if relocks { try directory.changeMode(mode) }
  }

  /// Removes an extended attribute that need not exist.
  func removeIfPresent(_ attribute: CName) throws(Errno) {
    do throws(Errno) { try removeExtendedAttribute(attribute) } catch {
      if error != .noData && error != .notSupported { throw error }
    }
  }
}
