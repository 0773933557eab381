/// Writes a zip archive byte by byte, optionally with errors.
public struct ZipBuilder {
  /// The compression method of an entry.
  public enum Method: UInt16, Sendable {
    case stored = 0
    /// A deflate stream of stored blocks.
    case deflated = 8
  }

  /// An entry and the errors to introduce.
  public struct Entry: Sendable {
    /// The name.
    public var name: ByteString
    /// The content.
    public var content: [UInt8]
    /// How it is packed.
    public var method: Method
    /// st_mode; 0 for an archive made on DOS.
    public var mode: UInt32 = 0o100644
    /// The general purpose bit flags.
    public var flags: UInt16 = 0
    /// Modification date and time; the default is 2020-02-03 04:05:06.
    public var dosTime: UInt32 = 0x5043_20A3
    /// The extra field of the central directory.
    public var extra: [UInt8] = []
    /// The extra field of the local header.
    public var localExtra: [UInt8] = []
    /// Added to the uncompressed size in the central directory and local header.
    public var sizeError = 0
    /// Added to the compressed size in the central directory and local header.
    public var compressedSizeError = 0
    /// Whether the CRC-32 is wrong.
    public var hasWrongChecksum = false
    /// Added to the local header offset in the central directory.
    public var offsetError = 0
    /// The recorded compression method, if it differs from the real one.
    public var claimedMethod: UInt16?
    /// The packed content; nil to pack it.
    public var packed: [UInt8]?

    /// Creates a valid entry.
    public init(_ name: ByteString, _ content: [UInt8] = [], _ method: Method = .stored) {
      (self.name, self.content, self.method) = (name, content, method)
    }

    /// Creates a valid entry.
    public init(_ name: ByteString, _ text: String, _ method: Method = .stored) {
      self.init(name, [UInt8](text.utf8), method)
    }
  }

  /// The archive comment.
  public var comment: [UInt8] = []
  /// Bytes before the archive.
  public var prefix: [UInt8] = []
  /// Bytes at the end of the central directory, such as a digital signature.
  public var signature: [UInt8] = []
  /// Whether to write the zip64 records.
  public var isWide = false
  /// The disk number in the end record.
  public var disk = 0
  /// The disk number in the zip64 end record.
  public var wideDisk = 0
  private var entries: [Entry] = []

  /// Creates an empty archive.
  public init() {}

  /// Creates an archive of entries.
  public init(_ entries: [Entry]) { self.entries = entries }

  /// Appends an entry.
  public mutating func add(_ entry: Entry) { entries.append(entry) }

  /// The archive's bytes.
  public var bytes: [UInt8] {
    var body: [UInt8] = []
    var table: [UInt8] = []
    for entry in entries {
      let offset = body.count
      let packed = entry.packed ?? (entry.method == .stored ? entry.content : Self.deflated(entry.content))
      let common = Self.common(entry, packed.count)
      body += Self.number(0x0403_4B50, 4) + common + Self.number(entry.localExtra.count, 2)
      body += entry.name.bytes + entry.localExtra + packed
      table += Self.number(0x0201_4B50, 4) + Self.number(entry.mode == 0 ? 20 : 0x0314, 2) + common
      table += Self.number(entry.extra.count, 2) + Self.number(0, 2) + Self.number(0, 2) + Self.number(0, 2)
      table += Self.number(Int(entry.mode) << 16, 4)
      table += Self.number(offset + entry.offsetError, 4) + entry.name.bytes + entry.extra
    }
    table += signature
    let end = isWide ? wideEnd(table.count, body.count) : []
    let count = isWide ? 0xFFFF : entries.count
    return prefix + body + table + end + Self.number(0x0605_4B50, 4) + Self.number(disk, 2)
      + Self.number(disk, 2)
      + Self.number(count, 2) + Self.number(count, 2) + Self.number(isWide ? 0xFFFF_FFFF : table.count, 4)
      + Self.number(isWide ? 0xFFFF_FFFF : body.count, 4) + Self.number(comment.count, 2) + comment
  }

  private func wideEnd(_ size: Int, _ offset: Int) -> [UInt8] {
    Self.number(0x0606_4B50, 4) + Self.number(44, 8) + Self.number(45, 2) + Self.number(45, 2)
      + Self.number(wideDisk, 4) + Self.number(wideDisk, 4) + Self.number(entries.count, 8)
      + Self.number(entries.count, 8)
      + Self.number(size, 8) + Self.number(offset, 8) + Self.number(0x0706_4B50, 4) + Self.number(0, 4)
      + Self.number(prefix.count + offset + size, 8) + Self.number(1, 4)
  }

  /// The fields from "version needed" to "file name length", common to both headers.
  private static func common(_ entry: Entry, _ packed: Int) -> [UInt8] {
    let checksum = Int(Self.checksum(entry.content)) ^ (entry.hasWrongChecksum ? 1 : 0)
    return number(20, 2) + number(Int(entry.flags), 2)
      + number(Int(entry.claimedMethod ?? entry.method.rawValue), 2) + number(Int(entry.dosTime & 0xFFFF), 2)
      + number(Int(entry.dosTime >> 16), 2) + number(checksum, 4)
      + number(packed + entry.compressedSizeError, 4) + number(entry.content.count + entry.sizeError, 4)
      + number(entry.name.count, 2)
  }

  /// A little-endian number of `count` bytes.
  public static func number(_ value: Int, _ count: Int) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: value >> ($0 * 8)) }
  }

  /// RFC 1951, stored blocks.
  private static func deflated(_ content: [UInt8]) -> [UInt8] {
    var packed: [UInt8] = []
    var start = 0
    repeat {
      let end = min(start + 0xFFFF, content.count)
      packed.append(end == content.count ? 1 : 0)
      packed += number(end - start, 2) + number(~(end - start), 2) + content[start..<end]
      start = end
    } while start < content.count
    return packed
  }

  /// CRC-32 (ISO 3309).
  public static func checksum(_ content: [UInt8]) -> UInt32 {
    content.withUnsafeBufferPointer { bytes in
      table.withUnsafeBufferPointer { table in
        var crc: UInt32 = 0xFFFF_FFFF
        var index = 0
        while index < bytes.count {
          crc = table[Int((crc ^ UInt32(bytes[index])) & 0xFF)] ^ crc >> 8
          index += 1
        }
        return ~crc
      }
    }
  }

  private static let table: [UInt32] = (0..<256).map { byte in
    var crc = UInt32(byte)
    for _ in 0..<8 { crc = crc & 1 != 0 ? crc >> 1 ^ 0xEDB8_8320 : crc >> 1 }
    return crc
  }
}
