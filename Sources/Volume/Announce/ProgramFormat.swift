/// The formats of files that execve(2) starts by itself.
enum ProgramFormat {
  /// The number of leading bytes to examine: the size of an ELF header.
  static let headerSize = 64

  private static let elf = [UInt8](arrayLiteral: 0x7F, 0x45, 0x4C, 0x46)

  /// Whether a file with these leading bytes is a script with an interpreter, or an ELF file with an entry point, which
  /// shared libraries have not.
  static func isProgram(_ header: [UInt8]) -> Bool {
    if header.starts(with: "#!".utf8) { return true }
    guard header.starts(with: elf), header.count >= 32 else { return false }
    let is64Bit = header[4] == 2
    return header[24..<(is64Bit ? 32 : 28)].contains { $0 != 0 }
  }
}
