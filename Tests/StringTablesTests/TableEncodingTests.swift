import StringTables
import Testing

/// Tables that are written in the encoding of another file.
@Suite struct TableEncodingTests {
  @Test("a table keeps the encoding and the byte order of the file that it replaces")
  func encodings() {
    var table = StringTable()
    table.set(StringTable.Entry(key: "k", value: "é", comment: nil))
    let text = String(decoding: table.written(), as: UTF8.self)
    let little = Self.bytes([0xFEFF] + Array(text.utf16))
    let big = Self.bytes(([0xFEFF] + Array(text.utf16)).map(\.byteSwapped))
    #expect(table.written(as: [0xFF, 0xFE, 0x20, 0]) == little)
    #expect(table.written(as: [0xFE, 0xFF, 0, 0x20]) == big)
    #expect(table.written(as: Array("\"k\" = \"v\";".utf8)) == Array(text.utf8))
    #expect(table.written(as: []) == Array(text.utf8))
    let list = "<?xml version=\"1.0\"?><plist version=\"1.0\"><dict/></plist>"
    #expect(table.written(as: Array(list.utf8)) == Array(text.utf8))
  }

  private static func bytes(_ units: [UInt16]) -> [UInt8] {
    units.reduce(into: []) { bytes, unit in
      bytes += [UInt8(truncatingIfNeeded: unit), UInt8(truncatingIfNeeded: unit >> 8)]
    }
  }
}
