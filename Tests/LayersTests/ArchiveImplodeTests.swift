import Posix
import TestSupport
import Testing

@testable import Layers

/// Entries in the method of PKZIP before version 2, for which no program that still runs can make archives.
@Suite struct ArchiveImplodeTests {
  /// Content with matches of all lengths and distances, and some before the beginning.
  private static func content(_ count: Int, seed: UInt64) -> [UInt8] {
    var random = SplitMix64(seed: seed)
    var content = [UInt8](repeating: 0, count: 20)
    while content.count < count {
      if Bool.random(using: &random) {
        content += (0..<Int.random(in: 1..<40, using: &random)).map { _ in
          UInt8.random(in: 0...255, using: &random)
        }
      } else {
        let start = max(0, content.count - Int.random(in: 1..<8000, using: &random))
        let length = Int.random(in: 3..<330, using: &random)
        for index in 0..<length { content.append(content[start + index]) }
      }
    }
    return Array(content.prefix(count))
  }

  private func archive(_ content: [UInt8], hasLiterals: Bool, isLarge: Bool) -> ZipBuilder {
    var entry = ZipBuilder.Entry("old", content)
    entry.packed = Imploder(content, hasLiterals: hasLiterals, distanceBits: isLarge ? 7 : 6).bytes
    entry.claimedMethod = 6
    entry.flags = (isLarge ? 2 : 0) | (hasLiterals ? 4 : 0)
    return ZipBuilder([entry])
  }

  @Test(
    "Implode is decoded, with each dictionary and number of tables", arguments: [false, true], [false, true])
  func imploded(hasLiterals: Bool, isLarge: Bool) throws {
    for (seed, count) in [1, 2, 100, 9000, 400_000].enumerated() {
      let content = Self.content(count, seed: UInt64(seed))
      let builder = archive(content, hasLiterals: hasLiterals, isLarge: isLarge)
      let fixture = try ArchiveFixture(archive: builder.bytes)
      #expect(fixture.layer.statistics.unreadable.isEmpty)
      #expect(try fixture.content("old") == content)
    }
  }

  @Test("any damage of an imploded entry is an error or has no effect")
  func damaged() throws {
    let content = Self.content(3000, seed: 7)
    let whole = archive(content, hasLiterals: true, isLarge: true).bytes
    let directory = try #require(whole.indices.first { whole[$0...].starts(with: [0x50, 0x4B, 1, 2]) })
    for index in stride(from: 34, to: directory, by: 7) {
      var damaged = whole
      damaged[index] ^= UInt8(1 << (index % 8))
      let fixture = try ArchiveFixture(archive: damaged)
      do { #expect(try fixture.content("old") == content, "byte \(index)") } catch {
        #expect(error as? Errno == .ioError)
      }
    }
  }
}

/// Packs by Implode, with codes of equal lengths.
private struct Imploder {
  private(set) var bytes: [UInt8] = []
  private var bits: UInt64 = 0
  private var count = 0
  private let hasLiterals: Bool
  private let distanceBits: Int

  init(_ content: [UInt8], hasLiterals: Bool, distanceBits: Int) {
    (self.hasLiterals, self.distanceBits) = (hasLiterals, distanceBits)
    // Sixteen times sixteen symbols of eight bits; 64 of six bits.
    if hasLiterals { bytes += [15] + [UInt8](repeating: 0xF7, count: 16) }
    for _ in 0..<2 { bytes += [3] + [UInt8](repeating: 0xF5, count: 4) }
    pack(content)
    put(0, 7)
  }

  private mutating func pack(_ content: [UInt8]) {
    let shortest = hasLiterals ? 3 : 2
    var last: [Int: Int] = [:]
    var position = 0
    while position < content.count {
      // The content begins with zeros, which are assumed before it.
      var (distance, length) = (position == 0 ? 1 : 0, 0)
      let key =
        position + 2 < content.count
        ? Int(content[position]) << 16 | Int(content[position + 1]) << 8 | Int(content[position + 2]) : -1
      if let former = last[key], position - former <= 64 << distanceBits { distance = position - former }
      if distance > 0 {
        while length < 63 + 255 + shortest, position + length < content.count {
          let source = position + length - distance
          if content[position + length] != (source < 0 ? 0 : content[source]) { break }
          length += 1
        }
      }
      last[key] = position
      if length >= shortest {
        putMatch(length - shortest, distance - 1)
        position += length
      } else {
        put(1, 1)
        if hasLiterals { putCode(Int(content[position]), 8) } else { put(Int(content[position]), 8) }
        position += 1
      }
    }
  }

  private mutating func putMatch(_ length: Int, _ distance: Int) {
    put(0, 1)
    put(distance & (1 << distanceBits - 1), distanceBits)
    putCode(distance >> distanceBits, 6)
    putCode(min(63, length), 6)
    if length >= 63 { put(length - 63, 8) }
  }

  /// The highest bit of a code comes first, and each is inverted.
  private mutating func putCode(_ symbol: Int, _ length: Int) {
    for bit in (0..<length).reversed() { put(~symbol >> bit & 1, 1) }
  }

  private mutating func put(_ value: Int, _ length: Int) {
    bits |= UInt64(value) << UInt64(count)
    count += length
    while count >= 8 {
      bytes.append(UInt8(truncatingIfNeeded: bits))
      bits >>= 8
      count -= 8
    }
  }
}
