import Containers
import TestSupport
import Testing

@Suite struct ShortArrayTests {
  @Test("random changes have the same effect as on an array")
  func model() {
    var random = SplitMix64(seed: 9)
    var short = ShortArray<Int>()
    var array: [Int] = []
    for number in 1...20_000 {
      let place = random.number(0...array.count)
      switch random.number(0...9) {
      case 0..<3:
        short.append(number)
        array.append(number)
      case 3..<5:
        short.insert(number, at: place)
        array.insert(number, at: place)
      case 5..<9 where place < array.count:
        let removed = (short.remove(at: place), array.remove(at: place))
        #expect(removed.0 == removed.1)
      case 9:
        let range = place..<random.number(place...array.count)
        short.replaceSubrange(range, with: [number, -number].prefix(number % 3))
        array.replaceSubrange(range, with: [number, -number].prefix(number % 3))
      default: break
      }
      guard short.elementsEqual(array), short.count == array.count, short.first == array.first,
        short.last == array.last
      else {
        Issue.record("after \(number) changes: \(Array(short)) instead of \(array)")
        return
      }
    }
  }
}
