import Posix
import TestSupport
import Testing

@testable import Volume

@Suite struct InodeNumbersTests {
  @Test("32 bits, equal for one file, different for any two, whatever its inode number")
  func files() {
    let numbers = InodeNumbers()
    var seen: [UInt64: String] = [:]
    for device: UInt64 in [5, 9, 1 << 40] {
      for inode: UInt64 in [
        0, 1, 2, 15, 16, 17, 4095, 4096, 1 << 31, 1 << 32, 1 << 43, 1 << 44, 1 << 63, .max,
      ] {
        let number = numbers.file(device: device, inode: inode)
        #expect(number == numbers.file(device: device, inode: inode))
        #expect(number >> 32 == 0 && number >= 16)
        #expect(seen.updateValue("\(device) \(inode)", forKey: number) == nil)
      }
    }
    #expect(numbers.file(device: 5, inode: 4711) == 4711, "a number that fits and is free stays")
    #expect(numbers.file(device: 9, inode: 100_000) == 100_000)
    #expect(numbers.file(device: 9, inode: 4711) != 4711)
  }

  @Test("numbers of unknown entries are dropped, those of known ones kept, and no two known ones share one")
  func bounded() {
    let numbers = InodeNumbers(limit: 1000)
    let known = (0..<100).map { inode in
      (
        inode: UInt64(inode) << 48 | 1 << 63,
        number: numbers.file(device: 7, inode: UInt64(inode) << 48 | 1 << 63)
      )
    }
    let live = Set(known.map(\.number))
    #expect(live.count == known.count)
    for inode in 0..<UInt64(20_000) {
      let number = numbers.file(device: 8 + inode % 3, inode: inode << 50 | 1 << 49)
      #expect(!live.contains(number))
      if numbers.isCrowded { numbers.drop(except: live) }
      #expect(numbers.hashedCount <= 2200)
    }
    for file in known { #expect(numbers.file(device: 7, inode: file.inode) == file.number) }
    #expect(numbers.file(device: 8, inode: 1 << 49) == numbers.file(device: 8, inode: 1 << 49))
  }

  @Test("more devices than there are pages")
  func devices() {
    let numbers = InodeNumbers()
    var seen = Set<UInt64>()
    for device in 0..<UInt64(600_000) {
      let number = numbers.file(device: device, inode: 100)
      #expect(seen.insert(number).inserted && number >> 32 == 0)
    }
    for device in [0, 1, 32_000, 599_999] as [UInt64] {
      #expect(!seen.insert(numbers.file(device: device, inode: 100)).inserted)
    }
  }

  @Test("a directory's number depends on its parent and name, unless two collide, and is never a file's")
  func directories() {
    let (numbers, others) = (InodeNumbers(), InodeNumbers())
    let names = (0..<200_000).map { Array("directory \($0)".utf8) }
    let found = names.map { numbers.directory(parent: InodeNumbers.root, name: $0) }
    #expect(Set(found).count == found.count)
    #expect(found.allSatisfy { $0 >> 31 == 1 })
    #expect(names.map { numbers.directory(parent: InodeNumbers.root, name: $0) } == found)
    let reversed = names.reversed().map { others.directory(parent: InodeNumbers.root, name: $0) }
    #expect(zip(found, reversed.reversed()).count { $0 != $1 } < 200)
    #expect(numbers.directory(parent: found[0], name: names[1]) != found[1])
  }

  @Test("hashed numbers that collide stay with their keys, whoever is known", arguments: 0..<20)
  func collisions(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    var numbers = HashedNumbers(limit: 8)
    // Keys of a few hashes.
    let keys = (0..<40).map { _ in UInt64(random.number(0...3)) | UInt64(random.number(0...99)) << 31 }
    var (live, displaced): ([UInt64: UInt64], [UInt64: UInt64]) = ([:], [:])
    for _ in 0..<300 {
      let key = random.pick(keys)
      let (number, isNew) = numbers.number(for: key)
      #expect(number >> 31 == 1)
      if isNew { #expect(displaced.updateValue(number, forKey: key) == nil) }
      if let former = live[key] ?? displaced[key] { #expect(number == former) }
      #expect(!live.contains { $0.key != key && $0.value == number })
      live[key] = number
      if random.percent(30), let gone = live.keys.randomElement(using: &random) { live[gone] = nil }
      if numbers.isCrowded { numbers.drop(except: Set(live.values)) }
    }
  }

  @Test("a successor has the same numbers, whichever file is met first")
  func restart() throws {
    let shared = try SharedMemory(name: "test", size: NodeMemory.size)
    let first = InodeNumbers(memory: NodeMemory(shared))
    let numbers = (1...5).map { first.file(device: UInt64($0), inode: 100) }
    let second = InodeNumbers(memory: NodeMemory(shared))
    #expect((1...5).reversed().map { second.file(device: UInt64($0), inode: 100) } == numbers.reversed())
    #expect(second.file(device: 6, inode: 100) == first.file(device: 6, inode: 100))
  }

  @Test(
    "a directory whose number was displaced keeps it in a successor, known or not", arguments: [false, true])
  func restartedDirectories(areKnown: Bool) throws {
    let shared = try SharedMemory(name: "test", size: NodeMemory.size)
    let first = InodeNumbers(memory: NodeMemory(shared))
    let names = (0..<150_000).map { Array("d\($0)".utf8) }
    let numbers = names.map { first.directory(parent: InodeNumbers.root, name: $0) }
    if areKnown {
      var table = NodeTable(budget: 5, memory: NodeMemory(shared))
      for (name, number) in zip(names, numbers) {
        _ = table.lookUpDirectory(name, in: NodeTable.root, inodeNumber: number)
      }
      table.record()
    }
    let second = InodeNumbers(memory: NodeMemory(shared))
    #expect(second.hashedCount >= (areKnown ? names.count : 1), "some collide")
    let again = names.reversed().map { second.directory(parent: InodeNumbers.root, name: $0) }
    let changed = zip(numbers, again.reversed()).count { $0 != $1 }
    // Without nodes it is not known which of two had the hash.
    #expect(changed <= (areKnown ? 0 : second.displacedCount))
  }
}
