import Testing

@testable import Volume

@Suite struct ProgramFormatTests {
  private static func elf(_ wordClass: UInt8, entryByte: Int?) -> [UInt8] {
    var header = [0x7F, 0x45, 0x4C, 0x46, wordClass] + [UInt8](repeating: 0, count: 59)
    if let entryByte { header[entryByte] = 1 }
    return header
  }

  @Test("scripts and ELF files with an entry point are programs")
  func formats() {
    let programs = [
      Array("#!/bin/sh\n".utf8), Array("#!".utf8), Self.elf(2, entryByte: 24), Self.elf(2, entryByte: 31),
      Self.elf(1, entryByte: 27),
    ]
    let others = [
      [], Array("#".utf8), Array("text".utf8), Self.elf(2, entryByte: nil), Self.elf(1, entryByte: 28),
      Array(Self.elf(2, entryByte: 24).prefix(20)),
    ]
    for header in programs { #expect(ProgramFormat.isProgram(header), "\(header)") }
    for header in others { #expect(!ProgramFormat.isProgram(header), "\(header)") }
  }
}
