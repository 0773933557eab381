/// Archives that were split into several files.
enum ArchivePart {
  /// Whether a file's name is that of a part: `NAME.7z.001`, `NAME.z01`.
  static func isName(_ name: [UInt8]) -> Bool {
    guard let dot = name.lastIndex(of: UInt8(ascii: ".")) else { return false }
    var end = name[(dot + 1)...]
    if end.first == UInt8(ascii: "z") || end.first == UInt8(ascii: "Z") {
      end = end.dropFirst()
      return end.count == 2 && end.allSatisfy(isDigit)
    }
    return end.count == 3 && end.allSatisfy(isDigit)
  }

  private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }
}

extension ArchiveError {
  /// Whether a part of an archive can be the cause.
  var isOfIncompleteFile: Bool {
    switch self {
    case .noArchive, .damaged, .damagedContainer: true
    default: false
    }
  }
}
