import Layers

/// Which layers a mount has, as its processes share it.
///
/// Invariants: IDs are distinct; there is at least one layer, the last of which is MAIN; a retired layer is one that nodes
/// may still refer to.
struct LayerTable: Equatable {
  struct Entry: Equatable {
    let id: LayerID
    /// The absolute path, without symbolic links; for an archive as in `ArchiveLayer.path`.
    let path: [UInt8]
    /// The bytes at the beginning of the path that name the archive; 0 for a directory.
    let archiveLength: Int
    /// The folder of the mount at which it is laid.
    var place: [[UInt8]] = []

    var laidPath: LaidPath { LaidPath(path, atFolder: place) }

    /// The path and, if it is laid at a folder, NUL and the path of that.
    fileprivate var located: [UInt8] { place.isEmpty ? path : path + [0] + laidPath.folder }

    fileprivate init(id: LayerID, located: [UInt8], archiveLength: Int) {
      let parts = located.split(separator: 0, maxSplits: 1, omittingEmptySubsequences: false)
      let place = parts.count > 1 ? parts[1].split(separator: UInt8(ascii: "/")) : []
      self.init(
        id: id, path: Array(parts[0]), archiveLength: archiveLength, place: place.map { Array($0) })
    }

    init(id: LayerID, path: [UInt8], archiveLength: Int, place: [[UInt8]] = []) {
      (self.id, self.path, self.archiveLength, self.place) = (id, path, archiveLength, place)
    }
  }

  /// The most layers, with the retired ones.
  static let mostLayers = 4096
  /// How many requests are remembered: the kernel can send each of them again.
  private static let mostRequests = 64

  /// Top first, MAIN last.
  var layers: [Entry]
  var retired: [Entry] = []
  /// The IDs of the layers before the last change, all of which are there still; empty without one.
  var former: [LayerID] = []
  /// The `unique` of the WRITE requests whose stacks were recorded, oldest first.
  private(set) var requests: [UInt64] = []

  init(layers: [Entry]) { self.layers = layers }

  /// By index.
  var all: [Entry] { layers + retired }

  mutating func add(request: UInt64) { requests = requests.suffix(Self.mostRequests - 1) + [request] }

  /// The smallest ID that none of the entries has; nil beyond `mostLayers`.
  static func freeID(among entries: [Entry]) -> LayerID? {
    let used = Set(entries.map(\.id))
    return (0..<UInt16(mostLayers)).lazy.map(LayerID.init(rawValue:)).first { !used.contains($0) }
  }

  // MARK: - Bytes

  /// Words of 8 bytes: the numbers of layers, retired layers, requests and former layers; the requests; the former layers;
  /// of each entry its ID, the length of the archive's path and that of the path with the folder at which it is laid, and these.
  var encoded: [UInt8] {
    var bytes: [UInt8] = []
    func append(_ word: UInt64) { withUnsafeBytes(of: word) { bytes += $0 } }
    for count in [layers.count, retired.count, requests.count, former.count] { append(UInt64(count)) }
    requests.forEach(append)
    for id in former { append(UInt64(id.rawValue)) }
    for entry in all {
      let located = entry.located
      for word in [entry.id.place, entry.archiveLength, located.count] { append(UInt64(word)) }
      bytes += located
    }
    return bytes
  }

  /// - Returns: nil if the bytes are no encoded table.
  init?(encoded bytes: UnsafeRawBufferPointer) {
    var reader = Reader(bytes: bytes)
    guard let count = reader.count(), let retired = reader.count(), let requests = reader.count(),
      let former = reader.count(), count > 0, max(count, retired, former) <= Self.mostLayers,
      requests <= Self.mostRequests
    else { return nil }
    for _ in 0..<requests {
      guard let request = reader.word() else { return nil }
      self.requests.append(request)
    }
    for _ in 0..<former {
      guard let id = reader.word().flatMap({ LayerID(exactly: $0) }) else { return nil }
      self.former.append(id)
    }
    var entries: [Entry] = []
    for _ in 0..<count + retired {
      guard let entry = reader.entry() else { return nil }
      entries.append(entry)
    }
    layers = Array(entries.prefix(count))
    self.retired = Array(entries.dropFirst(count))
  }

  private struct Reader {
    let bytes: UnsafeRawBufferPointer
    var offset = 0

    mutating func word() -> UInt64? {
      guard bytes.count - offset >= 8 else { return nil }
      defer { offset += 8 }
      return bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
    }

    mutating func count() -> Int? { word().flatMap { Int(exactly: $0) } }

    mutating func entry() -> Entry? {
      guard let id = word().flatMap({ LayerID(exactly: $0) }), let archive = count(), let length = count(),
        archive <= length, length <= bytes.count - offset
      else { return nil }
      defer { offset += length }
      return Entry(id: id, located: Array(bytes[offset..<offset + length]), archiveLength: archive)
    }
  }
}
