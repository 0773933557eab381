import Posix

/// A version of a file, by what tells it from others, also in another process and after a reboot.
struct FileVersion: Equatable {
  /// Which file it is.
  let file: UInt64
  /// Its own modification time and size. The lowest bit is 0.
  let state: UInt64
  /// By which its hard links, and its names after a rename, are one file.
  let shared: UInt64
  /// Its own modification time, in nanoseconds since the epoch, or the nearest number.
  let modified: Int64
  /// The same of its change time.
  let changed: Int64

  /// - Parameter isInArchive: whether an archive has the file: its inode number can be another one at the next mount.
  init(_ status: FileStatus, isInArchive: Bool) {
    shared = status.identity.lastingHash
    file =
      isInArchive && status.checksum != 0 ? mixedHash(UInt64(status.checksum), status.size) : shared
    (modified, changed) = (status.modified.clampedNanoseconds, status.changed.clampedNanoseconds)
    state =
      mixedHash(UInt64(bitPattern: status.modified.seconds), UInt64(status.modified.nanoseconds), status.size)
      & ~1
  }
}

/// What a name has shown last.
struct VisibleTimeRecord: Equatable, BitwiseCopyable {
  /// The hash of the path.
  var key: UInt64
  /// `FileVersion.file`; 0 if nothing is known of the name.
  var file: UInt64
  /// `FileVersion.state`; the lowest bit is 1 if a program has set the time through the mount.
  private var stateAndFlag: UInt64
  /// When this version became the visible one, in nanoseconds since the epoch; 0 where its own time is later, or was set.
  var since: Int64
  /// The modification time that was shown last, in nanoseconds since the epoch.
  var shown: Int64
  /// `FileVersion.changed` of the version that was shown; 0 if it is unknown, since it is not kept in the file.
  private(set) var changed: Int64 = 0

  init(key: UInt64, _ version: FileVersion, since: Int64, isSet: Bool = false) {
    (self.key, file) = (key, version.file)
    stateAndFlag = version.state | (isSet ? 1 : 0)
    self.since = since > version.modified ? since : 0
    shown = max(version.modified, self.since)
    changed = version.changed
  }

  /// Nothing is known of the name.
  init(unknown key: UInt64) {
    (self.key, file, stateAndFlag, since, shown) = (key, 0, 0, 0, 0)
  }

  /// Whether both are the same in the file.
  func isKept(as other: VisibleTimeRecord) -> Bool { words == other.words }

  /// `FileVersion.state` of the version that was shown.
  var state: UInt64 { stateAndFlag & ~1 }
  /// Whether a program has set the time.
  var isSet: Bool { stateAndFlag & 1 == 1 }

  // MARK: - Bytes

  /// With a checksum behind the fields.
  static let size = 48

  private var words: [UInt64] {
    [key, file, stateAndFlag, UInt64(bitPattern: since), UInt64(bitPattern: shown)]
  }

  private static func checksum(_ words: [UInt64]) -> UInt64 {
    words.reduce(0x7469_6D65) { mixedHash($0, $1) }
  }

  func append(to bytes: inout [UInt8]) {
    for word in words + [Self.checksum(words)] {
      withUnsafeBytes(of: word.littleEndian) { bytes.append(contentsOf: $0) }
    }
  }

  /// - Parameter bytes: `size` of them.
  /// - Returns: nil for a record that was not written whole.
  init?(_ bytes: UnsafeRawBufferPointer) {
    guard bytes.count == Self.size else { return nil }
    let words = (0..<6).map {
      UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: $0 * 8, as: UInt64.self))
    }
    guard words[5] == Self.checksum(Array(words[..<5])) else { return nil }
    (key, file, stateAndFlag) = (words[0], words[1], words[2])
    (since, shown) = (Int64(bitPattern: words[3]), Int64(bitPattern: words[4]))
  }
}
