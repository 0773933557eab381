import Posix
import Routing
import TestSupport
import Testing

@testable import Volume

extension ResultRing {
  fileprivate var lines: [[UInt8]] { (0..<count).map { self[$0].text } }

  fileprivate mutating func append(_ line: [UInt8]) {
    append(0, TimeSpec(seconds: 0, nanoseconds: 0), line.span, as: .line)
  }
}

@Suite struct ResultRingTests {
  private func line(_ number: Int, length: Int = 8) -> [UInt8] {
    let digits = Array("\(number)".utf8)
    return digits + Array(repeating: UInt8(ascii: "."), count: length - digits.count - 1) + [
      UInt8(ascii: "\n")
    ]
  }

  @Test("at most 1,024 lines are kept")
  func lines() {
    var ring = ResultRing()
    for number in 1...1024 { ring.append(line(number)) }
    #expect(ring.lines.count == 1024 && ring.lines.first == line(1))
    for number in 1025...3000 { ring.append(line(number)) }
    #expect(ring.lines == (1977...3000).map { line($0) })
    #expect(ring.size == 1024 * 8)
  }

  @Test("at most 1 MiB is kept, to the byte")
  func bytes() {
    var ring = ResultRing()
    for number in 1...256 { ring.append(line(number, length: 4096)) }
    #expect(ring.lines.count == 256 && ring.size == 1 << 20)
    ring.append(line(257))
    #expect(ring.lines.count == 256 && ring.lines.first == line(2, length: 4096))
    #expect(ring.size == 255 * 4096 + 8)
  }

  @Test("more lines may be kept, and a KiB for each")
  func larger() {
    var ring = ResultRing(lineLimit: 5000)
    for number in 1...5001 { ring.append(line(number, length: 1024)) }
    #expect(ring.count == 5000 && ring.lines.first == line(2, length: 1024))
  }

  @Test("the newest line is kept whatever its length")
  func oneLine() {
    var ring = ResultRing()
    ring.append(line(1))
    let long = line(2, length: (1 << 20) + 1)
    ring.append(long)
    #expect(ring.lines == [long] && ring.size == long.count)
    ring.append(line(3))
    #expect(ring.lines == [line(3)] && ring.size == 8)
  }

  @Test("with lines of random lengths, the ring equals a list truncated at its front")
  func model() {
    var random = SplitMix64(seed: 4)
    var ring = ResultRing()
    var list: [[UInt8]] = []
    for number in 1...6000 {
      let length = random.percent(1) ? random.number(8...1_200_000) : random.number(8...(number % 3000 + 8))
      ring.append(line(number, length: length))
      list.append(line(number, length: length))
      var size = list.reduce(0) { $0 + $1.count }
      while list.count > 1024 || (size > 1 << 20 && list.count > 1) { size -= list.removeFirst().count }
      guard ring.size == size else {
        Issue.record("after line \(number) there are \(ring.size) bytes, not \(size)")
        return
      }
      if number % 50 == 0, ring.lines != list {
        Issue.record("after line \(number) there are other lines")
        return
      }
    }
  }

  @Test("lines that are made when they are read are those that are made at once", arguments: [1024, 3000])
  func madeLater(lineLimit: Int) {
    var random = SplitMix64(seed: 5)
    var ring = ResultRing(lineLimit: lineLimit)
    var list: [[UInt8]] = []
    var size = 0
    for number in 1...5000 {
      // Quotation marks are escaped, so that a line is much longer than its command.
      let length = random.percent(3) ? random.number(1...60_000) : random.number(1...300)
      let command = [UInt8](repeating: UInt8(ascii: random.percent(50) ? "\"" : "x"), count: length)
      let time = TimeSpec(seconds: 1, nanoseconds: 0)
      var result = RetainedResult(UInt64(number), time, command.span, as: .applied)
      ring.append(UInt64(number), time, command.span, as: .applied)
      result.makeLine()
      list.append(result.text)
      size += result.text.count
      while list.count > lineLimit || (size > ResultRing.byteLimit(lines: lineLimit) && list.count > 1) {
        size -= list.removeFirst().count
      }
      if !random.percent(number < 3500 ? 1 : 5) { continue }
      ring.makeLines()
      guard ring.size == size, ring.lines == list else {
        Issue.record("after line \(number) there are \(ring.count) lines, not \(list.count)")
        return
      }
    }
  }
}
