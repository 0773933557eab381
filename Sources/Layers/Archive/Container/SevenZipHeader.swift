import CLibrary
import Posix

/// The start header of a 7z archive (7zFormat.txt of the LZMA SDK), 32 bytes.
struct SevenZipHeader {
  static let signature: [UInt8] = [0x37, 0x7A, 0xBC, 0xAF, 0x27, 0x1C]
  private static let size = 32

  /// The archive's size by its header, in bytes.
  let archiveSize: UInt64

  /// - Returns: nil if there is no valid header at an offset.
  init?(in source: ArchiveSource, at offset: UInt64 = 0) throws(Errno) {
    guard offset <= source.size, source.size - offset >= UInt64(Self.size) else { return nil }
    let end = try withUnsafeTemporaryBytes(Self.size) { buffer throws(Errno) -> UInt64? in
      try source.read(into: buffer, at: offset)
      let header = UnsafeRawBufferPointer(buffer)
      let checked = UnsafeRawBufferPointer(rebasing: header[12..<Self.size])
      guard header.starts(with: Self.signature), checked.crc32() == header.number(at: 8, as: UInt32.self)
      else { return nil }
      let (start, size) = (header.number(at: 12, as: UInt64.self), header.number(at: 20, as: UInt64.self))
      return [start, size].reduce(UInt64(Self.size)) { sum, count in
        let (sum, overflows) = sum.addingReportingOverflow(count)
        return overflows ? .max : sum
      }
    }
    guard let end else { return nil }
    archiveSize = end
  }

  /// What libarchive says of an archive that is whole, but packed as it cannot unpack.
  /// - Returns: the reason for users; nil if the message means something else.
  static func unsupportedMethod(in message: String) -> String? {
    if let colon = message.firstRange(of: "codec ID: ") {
      let number = message[colon.upperBound...].uppercased()
      let method = methods[number] ?? "the method \(number)"
      return "a 7z archive packed by \(method), which libarchive cannot unpack; pack it by LZMA2 instead"
    }
    if message.contains("not supported") || message.hasPrefix("Unsupported") {
      return "a 7z archive that libarchive cannot unpack: \(message)"
    }
    return nil
  }

  /// By number (Methods.txt of the LZMA SDK), those that libarchive lacks.
  private static let methods = [
    "40109": "Deflate64", "4F71101": "Zstandard", "4F71102": "Brotli", "4F71104": "LZ4", "4F71105": "LZ5",
    "4F71106": "Lizard", "A": "the filter ARM64", "B": "the filter RISCV",
  ]
}
