import CFuse
import Testing

@testable import Fuse

@Suite struct RequestHeaderTests {
  private static let file = NodeID(rawValue: 1 << 63 | 2)

  private func header(opcode: UInt32, node: NodeID, length: UInt32) -> RequestHeader {
    var bytes = [UInt8](repeating: 0, count: 80)
    return bytes.withUnsafeMutableBytes { bytes in
      bytes.storeBytes(of: length, as: UInt32.self)
      bytes.storeBytes(of: opcode, toByteOffset: 4, as: UInt32.self)
      bytes.storeBytes(of: node.rawValue, toByteOffset: 16, as: UInt64.self)
      var buffer = fuse_buf()
      buffer.mem = bytes.baseAddress
      buffer.size = bytes.count
      return RequestHeader(buffer)
    }
  }

  @Test("only a short WRITE to the file of commands is a short command")
  func shortCommand() {
    let file = Self.file
    #expect(header(opcode: 16, node: file, length: 100).isShortCommand(to: file))
    #expect(!header(opcode: 16, node: file, length: 4096).isShortCommand(to: file))
    #expect(!header(opcode: 16, node: .root, length: 100).isShortCommand(to: file))
    #expect(!header(opcode: 15, node: file, length: 100).isShortCommand(to: file))
    #expect(!header(opcode: 16, node: file, length: 100).isShortCommand(to: nil))
  }
}
