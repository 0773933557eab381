import Glibc
import Posix

/// The inode numbers that programs see (design, section 3, rule 7).
///
/// - A non-directory's follows from its device and inode number, so that it is the same after a forget and
///   for each of its hard links. The first device's numbers are kept as they are, the n-th device's get n in
///   bits 48 to 62; what does not fit into that is numbered as it is met, and remembered.
/// - A directory's is a hash of its merged path, with bit 63 set. Two directories would share one with a
///   probability of n² / 2⁶⁴ for n directories.
final class InodeNumbers: Sendable {
  private struct BackingInode: Hashable {
    let device: UInt64
    let inode: UInt64
  }
  private struct State {
    var devices: [UInt64] = []
    var remembered: [BackingInode: UInt64] = [:]
  }

  static let root: UInt64 = 1
  /// Below this, numbers are ours.
  private static let reserved: UInt64 = 16
  private static let inodeBits: UInt64 = 48
  private static let lastIndex: UInt64 = 0x7FFF

  private let state = Locked(State())

  /// The number of a non-directory.
  func file(device: UInt64, inode: UInt64) -> UInt64 {
    state.withLock { state in
      let index = Self.index(of: device, in: &state.devices)
      if inode >= Self.reserved, inode >> Self.inodeBits == 0, index < Self.lastIndex {
        return index << Self.inodeBits | inode
      }
      let place = BackingInode(device: device, inode: inode)
      if let number = state.remembered[place] { return number }
      let number = Self.lastIndex << Self.inodeBits | UInt64(state.remembered.count)
      state.remembered[place] = number
      return number
    }
  }

  /// The number of a directory, from its parent's and its name.
  static func directory(parent: UInt64, name: CName) -> UInt64 {
    directory(parent: parent, name: UnsafeRawBufferPointer(start: name, count: strlen(name)))
  }

  /// The number of a directory, from its parent's and its name.
  static func directory(parent: UInt64, name: some Sequence<UInt8>) -> UInt64 {
    // FNV-1a over the parent's number and the name, then a mix that spreads it over all bits.
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    func add(_ byte: UInt8) { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
    for shift in stride(from: 0, to: 64, by: 8) { add(UInt8(truncatingIfNeeded: parent >> UInt64(shift))) }
    for byte in name { add(byte) }
    hash = (hash ^ (hash >> 32)) &* 0xD6E8_FEB8_6659_FD93
    hash = (hash ^ (hash >> 32)) &* 0xD6E8_FEB8_6659_FD93
    return (hash ^ (hash >> 32)) | 1 << 63
  }

  private static func index(of device: UInt64, in devices: inout [UInt64]) -> UInt64 {
    if let index = devices.firstIndex(of: device) { return UInt64(index) }
    devices.append(device)
    return UInt64(devices.count - 1)
  }
}
