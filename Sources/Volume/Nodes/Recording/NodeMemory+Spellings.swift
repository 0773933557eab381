import Fuse
import Glibc
import Posix
import Synchronization

/// The spellings of `KnownSpellings`: each a length in two bytes, 0 in a free place, the directory, and the name.
extension NodeMemory {
  static let spellingCapacity = 65_536
  static let stride = 272
  private static let longest = stride - 16

  /// As `KnownSpellings` counts them.
  var addedSpellings: Int {
    get { Int(spellingCount.pointee) }
    nonmutating set { spellingCount.pointee = UInt32(clamping: newValue) }
  }

  /// The places that can have a spelling. Reading others would take memory for them.
  var usedSpellings: Range<Int> { 0..<min(addedSpellings, Self.spellingCapacity) }

  func spelling(at position: Int) -> EntryKey? {
    let place = spellings + position * Self.stride
    let length = Int(place.load(as: UInt16.self))
    if length == 0 || length > Self.longest { return nil }
    let parent = NodeID(rawValue: place.load(fromByteOffset: 8, as: UInt64.self))
    return EntryKey(parent: parent, name: Array(UnsafeRawBufferPointer(start: place + 16, count: length)))
  }

  func setSpelling(_ key: EntryKey?, at position: Int) {
    let place = spellings + position * Self.stride
    place.storeBytes(of: 0, as: UInt16.self)
    guard let key, key.name.count <= Self.longest else { return }
    atomicMemoryFence(ordering: .releasing)
    place.storeBytes(of: key.parent.rawValue, toByteOffset: 8, as: UInt64.self)
    key.name.withUnsafeBytes { bytes in
      if let start = bytes.baseAddress { memcpy(place + 16, start, bytes.count) }
    }
    atomicMemoryFence(ordering: .releasing)
    place.storeBytes(of: UInt16(key.name.count), as: UInt16.self)
  }
}
