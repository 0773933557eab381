import CLibrary
import Posix
import Synchronization

/// The states of archives whose files are open, in shared memory: a successor continues with the present ones, and with
/// the former ones that programs still read.
public final class ArchiveRegistry: Sendable {
  struct Record: BitwiseCopyable {
    /// The layer's ID, plus 1; 0 in a free place.
    var layer: UInt32 = 0
    var generation: UInt32 = 0
    /// The descriptor of the archive's file, and of the inode numbers of its nodes.
    var file: CInt = -1
    var numbers: CInt = -1
    /// Of the file when it was opened.
    var size: UInt64 = 0
    var modified: Int64 = 0
    var modifiedNanoseconds: UInt32 = 0
    /// Whether it is, or was the last time, the layer's present state.
    var isPresent: UInt32 = 0
  }

  private static let capacity = 1024
  /// The layers for which `nextInodes` has room.
  private static let layers = 4096
  /// The bytes that it takes in the memory.
  public static let size = capacity * MemoryLayout<Record>.stride + layers * 8

  private let memory: SharedMemory
  private let offset: Int
  private let lock = Locked(())

  /// - Parameter offset: where it begins in the memory, which is zero or what a predecessor has written.
  public init(_ memory: SharedMemory, at offset: Int) {
    self.memory = memory
    self.offset = offset
  }

  /// By layer, the first inode number that no state had.
  private var nextInodes: UnsafeMutablePointer<UInt64> {
    memory.values(of: UInt64.self, at: offset + Self.capacity * MemoryLayout<Record>.stride)
  }

  /// The first inode number that no state of a layer had; nil if none was open.
  func nextInode(of layer: Int) -> UInt64? {
    layer < Self.layers && nextInodes[layer] > 0 ? nextInodes[layer] : nil
  }

  private var places: UnsafeMutablePointer<Record> { memory.values(of: Record.self, at: offset) }

  /// The descriptors that are recorded.
  public var files: [CInt] {
    (0..<Self.capacity).flatMap { places[$0].layer == 0 ? [] : [places[$0].file, places[$0].numbers] }
  }

  /// The states of a layer, the present one first.
  func records(of layer: Int) -> [(place: Int, record: Record)] {
    (0..<Self.capacity).compactMap { place in
      places[place].layer == UInt32(layer) + 1 ? (place, places[place]) : nil
    }.sorted {
      ($0.record.isPresent, $0.record.generation) > ($1.record.isPresent, $1.record.generation)
    }
  }

  /// Records an open archive, which is the present one of its layer until another one is.
  /// - Returns: nil if there is no room or no descriptor left: it does not outlive the process.
  func register(_ index: ArchiveIndex, layer: Int) -> ArchiveRegistration? {
    guard layer < Self.layers, let numbers = try? index.numbersFile() else { return nil }
    nextInodes[layer] = max(nextInodes[layer], index.nextInode)
    let attributes = index.source.attributes
    let record = Record(
      generation: index.source.generation, file: index.source.descriptor.rawValue, numbers: numbers.rawValue,
      size: attributes.size, modified: attributes.modified.seconds,
      modifiedNanoseconds: attributes.modified.nanoseconds, isPresent: 1)
    let former = records(of: layer).map(\.place)
    let place = lock.withLock { _ -> Int? in
      guard let place = (0..<Self.capacity).first(where: { places[$0].layer == 0 }) else { return nil }
      places[place] = record
      atomicMemoryFence(ordering: .releasing)
      places[place].layer = UInt32(layer) + 1
      return place
    }
    guard let place else { return nil }
    for place in former { places[place].isPresent = 0 }
    return ArchiveRegistration(self, place, numbers)
  }

  func remove(_ place: Int) { places[place].layer = 0 }
}

/// An archive's place in the registry. It is free again when the archive's file is about to be closed.
final class ArchiveRegistration: Sendable {
  private let registry: ArchiveRegistry
  private let place: Int
  private let numbers: Descriptor

  init(_ registry: ArchiveRegistry, _ place: Int, _ numbers: consuming Descriptor) {
    self.registry = registry
    self.place = place
    self.numbers = numbers
  }

  deinit { registry.remove(place) }
}

extension ArchiveIndex {
  /// A memory file with the next inode number, followed by those of the nodes, in the order of the tree.
  fileprivate func numbersFile() throws(Errno) -> Descriptor {
    let file = try withCName(Array("inode numbers".utf8)) { name throws(Errno) in
      try Descriptor.memory(name: name)
    }
    var numbers = [nextInode]
    numbers.reserveCapacity(tree.count + 1)
    for node in tree.nodes { numbers.append(node.inode) }
    try file.writeAll(numbers)
    return file
  }

  /// The numbers of a former process; nil if they cannot be read.
  static func numbers(in file: borrowing Descriptor) -> [UInt64]? {
    guard let bytes = try? file.attributes().size, bytes >= 16, bytes % 8 == 0 else { return nil }
    var numbers = [UInt64](repeating: 0, count: Int(bytes / 8))
    let count = numbers.withUnsafeMutableBytes { pread(file.rawValue, $0.baseAddress, $0.count, 0) }
    return count == Int(bytes) ? numbers : nil
  }
}

extension Descriptor {
  fileprivate borrowing func writeAll(_ numbers: [UInt64]) throws(Errno) {
    var offset = 0
    while offset < numbers.count * 8 {
      let count = numbers.withUnsafeBytes { bytes in
        pwrite(rawValue, bytes.baseAddress.map { $0 + offset }, bytes.count - offset, off_t(offset))
      }
      if count <= 0 { throw .current }
      offset += count
    }
  }
}
