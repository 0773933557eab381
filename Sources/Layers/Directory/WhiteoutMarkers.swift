import Posix

/// The markers by which a layer hides entries of the layers below.
///
/// Overlayfs: a whiteout is a character device 0:0; a directory is opaque if its xattr
/// `trusted.overlay.opaque` or `user.overlay.opaque` is `y`. OCI image layers, fuse-overlayfs: a whiteout
/// is a file `.wh.NAME`; a directory is opaque if it contains `.wh..wh..opq`.
enum WhiteoutMarkers {
  private static let prefix: [UInt8] = [0x2E, 0x77, 0x68, 0x2E]  // ".wh."
  /// The longest name whose marker `.wh.NAME` fits `NAME_MAX`.
  private static let longestMarked = 255 - 4

  /// Whether a name is an OCI marker, which is never an entry.
  static func isMarker(_ name: CName) -> Bool {
    for (index, byte) in prefix.enumerated() where UInt8(bitPattern: name[index]) != byte { return false }
    return true
  }

  /// The name that a marker hides.
  static func name(hiddenBy marker: [UInt8]) -> [UInt8] { Array(marker.dropFirst(prefix.count)) }

  /// Calls the body with the marker for a name; returns nil if the marker would be too long.
  @inline(__always)
  static func withMarker<Result>(
    of name: CName, length: Int, _ body: (CName) throws(Errno) -> Result
  ) throws(Errno) -> Result? {
    guard length <= longestMarked else { return nil }
    return try withUnsafeTemporaryBytes(256) { buffer throws(Errno) in
      buffer.copyBytes(from: prefix)
      buffer.baseAddress.unsafelyUnwrapped.advanced(by: prefix.count).copyMemory(
        from: name, byteCount: length)
      buffer[prefix.count + length] = 0
      let marker = UnsafeRawPointer(buffer.baseAddress.unsafelyUnwrapped)
      return try body(marker.assumingMemoryBound(to: CChar.self))
    }
  }
}

extension LayerDirectory {
  func hasWhiteoutMarker(_ name: CName, length: Int) throws(Errno) -> Bool {
    if let spellings { return try hidesFolded(name, spellings) }
    return try WhiteoutMarkers.withMarker(of: name, length: length) { marker throws(Errno) in
      try contains(marker)
    }
      ?? false
  }

  /// Whether the directory hides the directories of the same path in the layers below.
  func isOpaque() throws(Errno) -> Bool {
    if try contains(".wh..wh..opq") { return true }
    guard case .descriptor(let handle) = backing else { return false }
    let yes = UInt8(ascii: "y")
    return try gate.call { () throws(Errno) in
      if try handle.descriptor.directoryAttribute("trusted.overlay.opaque", is: yes) { return true }
      return try handle.descriptor.directoryAttribute("user.overlay.opaque", is: yes)
    }
  }

  /// As `isOpaque`, but false if the file system has failed: a lookup in the directory fails before it reaches the
  /// layers below.
  func isKnownToBeOpaque() throws(Errno) -> Bool {
    do throws(Errno) { return try isOpaque() } catch {
      if error.isFileSystemFailure { return false }
      throw error
    }
  }
}
