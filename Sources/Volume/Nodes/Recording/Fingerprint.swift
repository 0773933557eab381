import Layers
import Posix

/// What tells whether a file or a directory is as it was: a hash of its identity, size, owner, mode and times. As the
/// change time cannot be set back, two equal ones mean that nothing has changed in between.
struct Fingerprint: BitwiseCopyable, Equatable {
  private let hash: UInt64

  /// Nothing was recorded, and the kernel has nothing cached.
  static let none = Fingerprint(hash: 0)
  /// The kernel may have cached several states.
  static let unknown = Fingerprint(hash: 1)
  /// Milliseconds in which a file system may give two changes the same time.
  private static let tick: Int32 = 20

  private init(hash: UInt64) { self.hash = hash }

  init(_ attributes: FileStatus) { self.init(of: CollectionOfOne((layer: 0, attributes: attributes))) }

  /// - Parameter parts: a directory's, with the IDs of their layers.
  init(of parts: some Sequence<(layer: Int, attributes: FileStatus)>) {
    let now = TimeSpec.now
    var (hash, isRecent) = (UInt64(0xCBF2_9CE4_8422_2325), false)
    for (layer, attributes) in parts {
      // Mixed on its own: layers and the inode numbers of their directories are often in the same order.
      hash = Self.combined(attributes, Self.mixed(hash ^ UInt64(layer)))
      if now.milliseconds(since: attributes.changed) < Self.tick { isRecent = true }
    }
    self.hash = isRecent ? Self.unknown.hash : hash | 2
  }

  private static func combined(_ status: FileStatus, _ seed: UInt64) -> UInt64 {
    var hash = mixed(seed ^ status.identity.inode)
    hash = mixed(hash ^ status.identity.device)
    hash = mixed(hash ^ status.size)
    hash = mixed(hash ^ (UInt64(status.links) << 32 | UInt64(status.mode)))
    hash = mixed(hash ^ (UInt64(status.owner) << 32 | UInt64(status.group)))
    hash = mixed(hash ^ UInt64(bitPattern: status.modified.seconds))
    hash = mixed(hash ^ UInt64(bitPattern: status.changed.seconds))
    return mixed(hash ^ (UInt64(status.modified.nanoseconds) << 32 | UInt64(status.changed.nanoseconds)))
  }

  private static func mixed(_ value: UInt64) -> UInt64 {
    var hash = value &* 0xD6E8_FEB8_6659_FD93
    hash ^= hash >> 32
    return hash &* 0xD6E8_FEB8_6659_FD93
  }
}
