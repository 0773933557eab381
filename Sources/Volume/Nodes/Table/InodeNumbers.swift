import Glibc
import Posix

/// The inode numbers (`st_ino`) of the mount.
///
/// - A non-directory's number is derived from its device and inode number, so that it survives FORGET and is
///   equal for all hard links. Bits 48 to 62 hold the index of the device, 0 for the first one. Inode numbers
///   that do not fit into the lower bits are replaced by sequential numbers, which are stored.
/// - A directory's number is a hash of its merged path, with bit 63 set. Among n directories two share a number
///   with a probability of n² / 2⁶⁴.
final class InodeNumbers: Sendable {
  private struct BackingInode: Hashable {
    let device: UInt64
    let inode: UInt64
  }
  private struct State {
    var devices: [UInt64] = []
    var assigned: [BackingInode: UInt64] = [:]
  }

  static let root: UInt64 = 1
  /// Smaller numbers are reserved for entries that no layer has.
  private static let reserved: UInt64 = 16
  private static let inodeBits: UInt64 = 48
  private static let lastIndex: UInt64 = 0x7FFF

  private let state = Locked(State())

  func file(device: UInt64, inode: UInt64) -> UInt64 {
    state.withLock { state in
      let known = state.devices.firstIndex(of: device)
      if known == nil { state.devices.append(device) }
      let index = UInt64(known ?? state.devices.count - 1)
      if inode >= Self.reserved, inode >> Self.inodeBits == 0, index < Self.lastIndex {
        return index << Self.inodeBits | inode
      }
      let key = BackingInode(device: device, inode: inode)
      if let number = state.assigned[key] { return number }
      let number = Self.lastIndex << Self.inodeBits | UInt64(state.assigned.count)
      state.assigned[key] = number
      return number
    }
  }

  static func directory(parent: UInt64, name: CName) -> UInt64 {
    directory(parent: parent, name: UnsafeRawBufferPointer(start: name, count: strlen(name)))
  }

  static func directory(parent: UInt64, name: some Sequence<UInt8>) -> UInt64 {
    // FNV-1a over the parent's number and the name, with a finalizer that spreads it over all bits.
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    func add(_ byte: UInt8) { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
    for shift in stride(from: 0, to: 64, by: 8) { add(UInt8(truncatingIfNeeded: parent >> UInt64(shift))) }
    for byte in name { add(byte) }
    hash = (hash ^ (hash >> 32)) &* 0xD6E8_FEB8_6659_FD93
    hash = (hash ^ (hash >> 32)) &* 0xD6E8_FEB8_6659_FD93
    return (hash ^ (hash >> 32)) | 1 << 63
  }
}
