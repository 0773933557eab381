import Posix

/// The marks by which a layer hides what lies below it, in the two formats in use.
///
/// Overlayfs: a character device 0:0 in backing of the entry; the xattr `trusted.overlay.opaque` or
/// `user.overlay.opaque` = `y` on a directory. Container layers (OCI image specification, fuse-overlayfs): a
/// file `.wh.NAME` beside the backing of the entry; a file `.wh..wh..opq` in a directory.
enum WhiteoutMarkers {
  private static let prefix: [UInt8] = [0x2E, 0x77, 0x68, 0x2E]  // ".wh."
  /// The longest name for which `.wh.NAME` fits into a name's 255 bytes.
  private static let longestMarked = 255 - 4

  /// Whether the name is a mark of the container format, and so names no entry.
  static func isMarker(_ name: CName) -> Bool {
    for (index, byte) in prefix.enumerated() where UInt8(bitPattern: name[index]) != byte { return false }
    return true
  }

  /// Runs the body with the mark that hides a name; nil where there can be none.
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
      let mark = UnsafeRawPointer(buffer.baseAddress.unsafelyUnwrapped)
      return try body(mark.assumingMemoryBound(to: CChar.self))
    }
  }
}

extension LayerDirectory {
  /// Whether the directory holds the mark `.wh.NAME`.
  func hasWhiteoutMarker(_ name: CName, length: Int) throws(Errno) -> Bool {
    try WhiteoutMarkers.withMarker(of: name, length: length) { mark throws(Errno) in try contains(mark) }
      ?? false
  }

  /// Whether the directory hides the same directory of the layers below.
  func isOpaque() throws(Errno) -> Bool {
    if try contains(".wh..wh..opq") { return true }
    guard case .descriptor(let handle) = backing else { return false }
    let yes = UInt8(ascii: "y")
    if try handle.descriptor.directoryAttribute("trusted.overlay.opaque", is: yes) { return true }
    return try handle.descriptor.directoryAttribute("user.overlay.opaque", is: yes)
  }
}
