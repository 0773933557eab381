import CLibrary

enum EntryName {
  /// Calls the body with the name: as it is if flagged as UTF-8; that of Info-ZIP's field, which some programs write
  /// beside a name with replacement characters; converted from the encoding that the user gave; as it is if valid as
  /// UTF-8; or else converted from code page 437.
  static func withBytes<Result>(
    of record: ZipRecord, _ converter: NameConverter?, _ body: (UnsafeRawBufferPointer) -> Result
  ) -> Result {
    let name = record.name
    if record.flags & 1 << 11 != 0 { return body(name) }
    if let unicode = record.unicodeName { return body(unicode) }
    if name.allSatisfy({ $0 < 0x80 }) { return body(name) }
    if let converted = converter?.convert(name) { return body(converted) }
    if String(validating: name, as: UTF8.self) != nil { return body(name) }
    var converted: [UInt8] = []
    converted.reserveCapacity(name.count * 3)
    for byte in name {
      if byte < 0x80 { converted.append(byte) } else { converted += upperHalf[Int(byte) - 0x80] }
    }
    return converted.withUnsafeBytes(body)
  }

  /// A name as it is if valid as UTF-8 or if no encoding is known, which is what a file system would do.
  static func converted(
    _ name: UnsafeRawBufferPointer, _ converter: NameConverter?
  ) -> UnsafeRawBufferPointer {
    guard let converter, String(validating: name, as: UTF8.self) == nil else { return name }
    return converter.convert(name) ?? name
  }

  /// The path with slashes for backslashes, which some Windows programs write against the format's rules; nil if it has
  /// none.
  static func withoutBackslashes(_ path: UnsafeRawBufferPointer) -> [UInt8]? {
    path.contains(backslash) ? path.map { $0 == backslash ? slash : $0 } : nil
  }

  /// Why a path is rejected; nil if it is valid. Slashes at its beginning do not count: a program that extracts an archive
  /// strips them.
  static func fault(of path: UnsafeRawBufferPointer) -> SkipReason? {
    if path.isEmpty { return .empty }
    if path.contains(0) { return .null }
    if path.count >= PATH_MAX { return .tooLong }
    var start = 0
    var names = 0
    while start < path.count {
      let end = self.end(of: path, from: start)
      if end - start == 2 && path[start] == dot && path[start + 1] == dot { return .parent }
      if end - start > NAME_MAX { return .tooLong }
      if !isEmptyOrDot(path, start, end) { names += 1 }
      start = end + 1
    }
    // `./` is the archive's root.
    return names == 0 && path[path.count - 1] != slash ? .empty : nil
  }

  static let slash = UInt8(ascii: "/")
  private static let backslash = UInt8(ascii: "\\")
  private static let dot = UInt8(ascii: ".")

  /// The end of the component that begins at an offset.
  @inline(__always)
  static func end(of path: UnsafeRawBufferPointer, from start: Int) -> Int {
    guard let base = path.baseAddress, start < path.count,
      let found = memchr(base + start, CInt(slash), path.count - start)
    else { return path.count }
    return UnsafeRawPointer(found) - base
  }

  @inline(__always)
  static func isEmptyOrDot(_ path: UnsafeRawBufferPointer, _ start: Int, _ end: Int) -> Bool {
    end == start || (end - start == 1 && path[start] == dot)
  }

  /// The upper half of code page 437, each character in UTF-8.
  private static let upperHalf: [[UInt8]] =
    ("ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀"
    + "αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u{A0}").unicodeScalars.map { Array(String($0).utf8) }
}
