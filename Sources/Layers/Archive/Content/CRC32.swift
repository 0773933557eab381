/// The checksum of zip archives (ISO 3309), over bytes as they come.
struct CRC32: Sendable {
  private var state: UInt32 = 0xFFFF_FFFF

  /// Of what was added so far.
  var value: UInt32 { ~state }

  /// Takes further bytes in, eight at a time.
  mutating func add(_ bytes: UnsafeRawBufferPointer) {
    var crc = state
    Self.tables.withUnsafeBufferPointer { tables in
      var place = 0
      while place + 8 <= bytes.count {
        let word = bytes.number(at: place, as: UInt64.self) ^ UInt64(crc)
        crc =
          tables[0x700 + Int(word & 0xFF)] ^ tables[0x600 + Int(word >> 8 & 0xFF)]
          ^ tables[0x500 + Int(word >> 16 & 0xFF)] ^ tables[0x400 + Int(word >> 24 & 0xFF)]
        crc ^=
          tables[0x300 + Int(word >> 32 & 0xFF)] ^ tables[0x200 + Int(word >> 40 & 0xFF)]
          ^ tables[0x100 + Int(word >> 48 & 0xFF)] ^ tables[Int(word >> 56)]
        place += 8
      }
      while place < bytes.count {
        crc = tables[Int((crc ^ UInt32(bytes[place])) & 0xFF)] ^ crc >> 8
        place += 1
      }
    }
    state = crc
  }

  /// Eight tables of 256: the n-th is for a byte that n others follow.
  private static let tables: [UInt32] = {
    var tables = [UInt32](repeating: 0, count: 8 * 256)
    for byte in 0..<256 {
      var crc = UInt32(byte)
      for _ in 0..<8 { crc = crc & 1 != 0 ? crc >> 1 ^ 0xEDB8_8320 : crc >> 1 }
      tables[byte] = crc
    }
    for place in 256..<tables.count {
      let former = tables[place - 256]
      tables[place] = tables[Int(former & 0xFF)] ^ former >> 8
    }
    return tables
  }()
}
