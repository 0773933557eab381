import Glibc
import Posix
import TestSupport
import Testing

/// The pages that the kernel has cached of a large file stay there when the file is written to through the mount.
extension MountTests {
  @Suite struct WrittenPageTests {
    private static let size = 1 << 20

    private func reads(_ mount: Mount) throws -> Int { try mount.report().requests["READ"] ?? 0 }

    @Test("what was read or written is not read again after a write", .timeLimit(.minutes(2)))
    func pagesStay() throws {
      try withWritable { mount, fixture in
        let (file, below) = (mount.point / "large", fixture.substitution / "large")
        var content = [UInt8](repeating: 1, count: Self.size)
        try file.write(content)
        for (number, isListed) in [false, true, false].enumerated() {
          var place = number
          // The kernel may drop pages at any time.
          let stays = try eventually(within: 30) {
            place = (place + 5003) % Self.size
            content[place] = UInt8(truncatingIfNeeded: place)
            let before = try reads(mount)
            try file.overwrite([content[place]], at: place)
            #expect(
              try file.status().modified == below.status().modified, "a program gets the new time at once")
            if isListed { _ = try mount.point.names() }
            #expect(try file.read() == content)
            return try reads(mount) == before
          }
          #expect(stays, "round \(number)")
        }
        #expect(try below.read() == content)
      }
    }

    @Test("the kernel caches the new attributes soon after a write", .timeLimit(.minutes(2)))
    func attributes() throws {
      try withWritable { mount, fixture in
        let (file, below) = (mount.point / "large", fixture.substitution / "large")
        try file.write([UInt8](repeating: 1, count: Self.size))
        for number in 0..<3 {
          try file.overwrite([2], at: number)
          let isCached = try eventually(within: 60) {
            _ = try file.status()
            let requests = try mount.report().requests["GETATTR"] ?? 0
            _ = try file.status()
            return try (mount.report().requests["GETATTR"] ?? 0) == requests
          }
          #expect(isCached)
          #expect(try file.status().modified == below.status().modified)
        }
      }
    }

    @Test("a change by another program between two of ours is seen", .timeLimit(.minutes(1)))
    func mixedChanges() throws {
      try withWritable { mount, fixture in
        let (file, below) = (mount.point / "shared", fixture.substitution / "shared")
        try file.write([UInt8](repeating: 0, count: Self.size))
        for number in 1..<200 {
          let byte = UInt8(number)
          try file.overwrite([byte], at: number)
          // Both what the mount has written and what the other program has.
          if number % 3 == 0 { _ = try file.status() }
          try below.overwrite([byte], at: Self.size - number * 4096)
          if number % 3 == 1 { _ = try file.status() }
          try file.overwrite([byte], at: 1000 + number)
          if number % 10 != 0 { continue }
          try mount.barrier()
          #expect(try file.read() == below.read(), "after \(number) rounds")
          #expect(try file.status().modified == below.status().modified)
        }
      }
    }
  }
}
