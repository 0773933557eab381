#if Archives
import Posix

extension EntryDecoder {
  private static let linkedMethods: Set<UInt16> = [
    StoredDecoder.method, InflateDecoder.method, Deflate64Decoder.method, Bzip2Decoder.method,
  ]

  /// Whether entries in a compression method can be decoded.
  static func canDecode(_ method: UInt16) -> Bool {
    linkedMethods.contains(method) || Libarchive.supports(method)
  }

  /// Creates the decoder for an entry.
  /// - Throws: EACCES if no password fits; EOPNOTSUPP for an unknown method; ENOMEM; EIO.
  static func make(_ entry: CompressedEntry, passwords: [[UInt8]]) throws(Errno) -> EntryDecoder {
    if let container = entry.container { return try container.decoder(of: entry) }
    let isEncrypted = entry.node.flags.contains(.isEncrypted)
    if isEncrypted { return try LibarchiveDecoder(entry, passwords) }
    switch entry.node.method {
    case StoredDecoder.method: return try StoredDecoder(entry)
    case InflateDecoder.method:
      return if let fast = try IsalDecoder.make(entry) { fast } else { try InflateDecoder(entry) }
    case Deflate64Decoder.method: return try Deflate64Decoder(entry)
    case Bzip2Decoder.method: return try Bzip2Decoder(entry)
    default: return try LibarchiveDecoder(entry, passwords)
    }
  }
}
#endif
