import CLibrary
import Posix
import Synchronization

/// Writes the whiteouts of the upper layer: devices 0:0, or marker files.
///
/// The functions make no call on a gate: their callers do.
final class WhiteoutWriter: Sendable {
  private let format: WhiteoutFormat
  private let markers: Atomic<Bool>
  /// Whether the file system is known to have devices 0:0.
  private let hasDevices = Atomic(false)
  private let work: WorkFolder
  private let shared: WhiteoutDevice

  /// Whether whiteouts are marker files.
  var areMarkers: Bool { markers.load(ordering: .relaxed) }

  /// - Parameter layer: its root decides about the format if that is `auto`.
  init(_ layer: DirectoryLayer, _ work: WorkFolder, _ format: WhiteoutFormat = .auto) throws(Errno) {
    self.work = work
    shared = WhiteoutDevice(work)
    self.format = format
    var areMarkers = format == .markers
    if format == .auto {
      try layer.root.forEachEntry { entry throws(Errno) in
        if WhiteoutMarker.isMarker(entry.name), !WorkFolder.isName(entry.name) { areMarkers = true }
      }
    }
    markers = Atomic(areMarkers)
  }

  /// - Throws: EOPNOTSUPP if devices are wanted that the layer cannot have.
  func check() throws(Errno) {
    if format == .devices, try !canMakeDevices() { throw .notSupported }
  }

  /// Sets a device 0:0 aside, of which whiteouts become further names when there is no inode left for them.
  func prepare() { if !areMarkers { try? shared.prepare() } }

  /// Makes a device 0:0.
  /// - Returns: false if the file system cannot have one: markers are made from now on.
  /// - Throws: EPERM and the like if only devices are wanted.
  func makeDevice(_ name: CName, in directory: borrowing Descriptor) throws(Errno) -> Bool {
    do throws(Errno) {
      try makeDeviceOnly(name, in: directory)
      return true
    } catch {
      let canMeanUnsupported = error == .notPermitted || error == .notSupported || error == .invalidArgument
      // It can be that directory alone which may not be changed.
      guard format == .auto, canMeanUnsupported, try !canMakeDevices() else { throw error }
      markers.store(true, ordering: .relaxed)
      return false
    }
  }

  /// Makes a device 0:0 in the work folder that is about to take the place of an entry, also when there is no inode left:
  /// the entry's inode then becomes free for another one.
  /// - Returns: as `makeDevice`.
  func makeReplacement(_ name: CName, in folder: borrowing Descriptor) throws(Errno) -> Bool {
    do throws(Errno) { return try makeDevice(name, in: folder) } catch {
      guard error == .noSpace || error == .diskQuotaExceeded else { throw error }
      guard (try? shared.move(to: name, in: folder)) != nil else { throw error }
      return true
    }
  }

  private func makeDeviceOnly(_ name: CName, in directory: borrowing Descriptor) throws(Errno) {
    if try !shared.link(name, in: directory) {
      try directory.makeNode(name, mode: FileKind.characterDevice.rawValue, device: 0)
    }
    hasDevices.store(true, ordering: .relaxed)
  }

  private func canMakeDevices() throws(Errno) -> Bool {
    if hasDevices.load(ordering: .relaxed) { return true }
    try work.withName { folder, name throws(Errno) in
      guard (try? makeDeviceOnly(name, in: folder)) != nil else { return }
      try folder.remove(name, isDirectory: false)
    }
    return hasDevices.load(ordering: .relaxed)
  }

  /// Makes a marker for a name.
  /// - Throws: ENAMETOOLONG for a name that a marker cannot have.
  /// - Returns: whether there was none.
  func makeMarker(of name: CName, in directory: borrowing Descriptor) throws(Errno) -> Bool {
    try Self.withMarker(of: name) { marker throws(Errno) in
      do throws(Errno) {
        try directory.makeNode(marker, mode: FileKind.regular.rawValue | 0o644, device: 0)
        return true
      } catch {
        if error == .fileExists { return false }
        throw error
      }
    }
  }

  /// Removes the marker for a name if there is one.
  func removeMarker(of name: CName, in directory: borrowing Descriptor) throws(Errno) {
    do throws(Errno) {
      try Self.withMarker(of: name) { marker throws(Errno) in
        do throws(Errno) { try directory.remove(marker, isDirectory: false) } catch {
          if error != .isDirectory { throw error }
          try removeDirectoryMarker(marker, in: directory)
        }
      }
    } catch {
      if error != .noSuchFileOrDirectory && error != .fileNameTooLong { throw error }
    }
  }

  /// Of a marker, the name alone counts.
  private func removeDirectoryMarker(_ marker: CName, in directory: borrowing Descriptor) throws(Errno) {
    try work.withName { folder, temporary throws(Errno) in
      try directory.unlocking(marker) { () throws(Errno) in
        try directory.rename(marker, to: temporary, in: folder)
      }
      try work.removeTree([UInt8](bytesOf: temporary), in: folder)
    }
  }

  /// Removes the marker beside an entry that has just got its name: it hides nothing any more that the entry does not hide,
  /// and other programs would take the entry for deleted. If this process dies before, the marker stays, and the entry shows.
  /// - Parameter directory: the marker is in its top part, `parent`.
  func removeMarker(
    beside name: CName, of directory: MergedDirectory, in parent: borrowing Descriptor
  ) {
    // Where nothing is below, markers are made only by other programs.
    if directory.isAlone, !areMarkers { return }
    try? removeMarker(of: name, in: parent)
  }

  /// Whether there is a marker for a name.
  func hasMarker(of name: CName, in directory: borrowing Descriptor) throws(Errno) -> Bool {
    do throws(Errno) {
      return try Self.withMarker(of: name) { marker throws(Errno) in try directory.contains(marker) }
    } catch {
      if error == .fileNameTooLong { return false }
      throw error
    }
  }

  private static func withMarker<Result>(
    of name: CName, _ body: (CName) throws(Errno) -> Result
  ) throws(Errno) -> Result {
    guard let result = try WhiteoutMarker.withMarker(of: name, length: strlen(name), body) else {
      throw .fileNameTooLong
    }
    return result
  }

  /// Makes a directory opaque: by an extended attribute, or by a file in it where there are none.
  /// - Returns: whether it is an attribute, which leaves the directory empty.
  @discardableResult
  func makeOpaque(_ directory: borrowing Descriptor) throws(Errno) -> Bool {
    if !areMarkers {
      if try setOpaque(OpaqueAttribute.trusted.cName, of: directory) { return true }
      if try setOpaque(OpaqueAttribute.user.cName, of: directory) { return true }
    }
    do throws(Errno) {
      try directory.makeNode(WhiteoutMarker.opaque.cName, mode: FileKind.regular.rawValue | 0o644, device: 0)
    } catch {
      if error != .fileExists { throw error }
    }
    return false
  }

  /// - Returns: false if the attribute is not supported or not permitted.
  private func setOpaque(_ attribute: CName, of directory: borrowing Descriptor) throws(Errno) -> Bool {
    do throws(Errno) {
      try [OpaqueAttribute.opaque].withBytes { value throws(Errno) in
        try directory.setExtendedAttribute(attribute, value, flags: 0)
      }
      return true
    } catch {
      if error == .notPermitted || error == .notSupported { return false }
      throw error
    }
  }

  /// Removes the whiteouts and markers in a directory.
  /// - Throws: ENOTEMPTY if it has anything else; nothing is removed then.
  func clear(_ directory: borrowing Descriptor) throws(Errno) {
    for name in try clearable(directory) {
      try withCName(name) { name throws(Errno) in try directory.remove(name, isDirectory: false) }
    }
  }

  /// The names of the whiteouts and markers in a directory.
  /// - Throws: ENOTEMPTY if it has anything else, such as names that the view hides.
  @discardableResult
  func clearable(_ directory: borrowing Descriptor) throws(Errno) -> [[UInt8]] {
    let names = try directory.entryNames()
    for name in names {
      try withCName(name) { name throws(Errno) in
        if WhiteoutMarker.isMarker(name) { return }
        if try !directory.hasDeviceWhiteout(name) { throw .directoryNotEmpty }
      }
    }
    return names
  }
}
