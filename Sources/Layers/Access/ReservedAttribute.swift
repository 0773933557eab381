import CLibrary
import Posix

/// Extended attributes that have a meaning of their own: they are not a file's, and copies do not carry them on.
public enum ReservedAttribute {
  /// Whether an attribute is one by which overlayfs, fuse-overlayfs, or this file system marks its layers.
  public static func isMarker(_ name: some Sequence<UInt8>) -> Bool {
    has(name, prefix: "trusted.overlay.") || has(name, prefix: "user.overlay.")
      || has(name, prefix: "user.fuseoverlayfs.") || isTimeMark(name)
      || StagedTableMark.names.contains { mark in mark.withUTF8Buffer { name.elementsEqual($0) } }
  }

  /// Whether an attribute is one by which a mount says where an entry comes from.
  public static func isOwn(_ name: some Sequence<UInt8>) -> Bool { has(name, prefix: "user.bundlefs.") }

  /// Whether an attribute is that of a directory's time, which copies of the directory carry on.
  static func isTimeMark(_ name: some Sequence<UInt8>) -> Bool {
    DirectoryTimeMark.names.contains { mark in mark.withUTF8Buffer { name.elementsEqual($0) } }
  }

  /// As the other `isMarker`.
  public static func isMarker(_ name: CName) -> Bool { isMarker(bytes(of: name)) }

  /// As the other `isOwn`.
  public static func isOwn(_ name: CName) -> Bool { isOwn(bytes(of: name)) }

  private static func bytes(of name: CName) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(start: name, count: strlen(name))
  }

  private static func has(_ name: some Sequence<UInt8>, prefix: StaticString) -> Bool {
    prefix.withUTF8Buffer { name.starts(with: $0) }
  }
}
