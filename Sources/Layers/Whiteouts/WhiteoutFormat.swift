import Posix

/// The format of the whiteouts that an upper layer gets.
public enum WhiteoutFormat: String, Sendable {
  /// Marker files if the layer holds such files already or its file system has no devices 0:0; else devices.
  case auto
  /// Devices 0:0.
  case devices
  /// Files `.wh.NAME`, which git(1) and archives keep.
  case markers
}

/// The marker files by which a layer hides entries of the layers below, as OCI image layers and fuse-overlayfs have them: a
/// whiteout is a file `.wh.NAME`; a directory is opaque if it contains `.wh..wh..opq`.
public enum WhiteoutMarker {
  /// `.wh.`
  static let prefix: [UInt8] = [0x2E, 0x77, 0x68, 0x2E]
  /// The marker in an opaque directory.
  static let opaque: StaticString = ".wh..wh..opq"
  /// The longest name whose marker fits `NAME_MAX`.
  private static let longestMarked = 255 - 4

  /// Whether a name is a marker's, which is never an entry.
  public static func isMarker(_ name: CName) -> Bool {
    for (index, byte) in prefix.enumerated() where UInt8(bitPattern: name[index]) != byte { return false }
    return true
  }

  /// As the other `isMarker`.
  public static func isMarker(_ name: [UInt8]) -> Bool { name.starts(with: prefix) }

  /// Whether a name is that of the marker in an opaque directory.
  public static func isOpaque(_ name: [UInt8]) -> Bool { opaque.withUTF8Buffer { name.elementsEqual($0) } }

  /// The name that a marker hides.
  public static func name(hiddenBy marker: [UInt8]) -> [UInt8] { Array(marker.dropFirst(prefix.count)) }

  /// The name that an entry of a layer's directory concerns: of a marker, the one that it hides.
  public static func name(concernedBy entry: [UInt8]) -> [UInt8] {
    isMarker(entry) ? name(hiddenBy: entry) : entry
  }

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

/// The extended attributes by which overlayfs and fuse-overlayfs mark a directory as opaque.
enum OpaqueAttribute {
  static let trusted: StaticString = "trusted.overlay.opaque"
  /// Of an overlayfs mounted with `userxattr`.
  static let user: StaticString = "user.overlay.opaque"
  /// Of fuse-overlayfs without privileges.
  static let fuse: StaticString = "user.fuseoverlayfs.opaque"
  /// The value in an opaque directory.
  static let opaque = UInt8(ascii: "y")
  /// The value in a directory whose whiteouts can be empty files with `trusted.overlay.whiteout`.
  static let withWhiteouts = UInt8(ascii: "x")
}

extension FileStatus {
  /// Whether the file is a whiteout of overlayfs: a character device 0:0.
  var isWhiteoutDevice: Bool { kind == .characterDevice && rdev == 0 }
}
