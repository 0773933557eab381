import Glibc
import Posix
import TestSupport
import Testing

@Suite struct DescriptorTests {
  @Test("a descriptor is closed at the end of its lifetime")
  func closing() throws {
    var number: CInt = -1
    do {
      let descriptor = try Descriptor.open("/", [.read, .directory])
      number = descriptor.rawValue
      #expect(fcntl(number, F_GETFD) == FD_CLOEXEC)
    }
    #expect(fcntl(number, F_GETFD) == -1)
  }

  @Test("flags say what they allow, and open(2) gets its access mode")
  func flags() throws {
    #expect(!OpenFlags.directory.contains(.read) && !OpenFlags.write.contains(.read))
    #expect(!([.pathOnly, .directory] as OpenFlags).contains(.read))
    #expect(OpenFlags.readWrite.contains(.read) && OpenFlags.readWrite.contains(.write))
    let folder = try TemporaryFolder()
    let path = (folder / "file").bytes
    try (folder / "file").write("x")
    let modes: [(OpenFlags, CInt)] = [
      (.read, O_RDONLY), (.write, O_WRONLY), (.readWrite, O_RDWR), ([.read, .write], O_RDWR),
      ([.read, .nonBlocking], O_RDONLY), ([], O_RDONLY),
    ]
    for (flags, mode) in modes {
      let file = try Descriptor.open(path, flags)
      #expect(fcntl(file.rawValue, F_GETFL) & O_ACCMODE == mode)
      #expect(fcntl(file.rawValue, F_GETFL) & O_NONBLOCK == (flags.contains(.nonBlocking) ? O_NONBLOCK : 0))
    }
  }

  @Test("times beyond what 64 bits of nanoseconds hold are clamped")
  func times() {
    for seconds in [Int64.max, .min, 10_413_792_000, -20_000_000_000] {
      let clamped = TimeSpec(seconds: seconds, nanoseconds: 999_999_999).clampedNanoseconds
      #expect(clamped == (seconds < 0 ? .min : .max))
    }
    #expect(TimeSpec(seconds: .max, nanoseconds: 0).microseconds == .max)
    #expect(TimeSpec(seconds: -2, nanoseconds: 500_000_000).clampedNanoseconds == -1_500_000_000)
    #expect(TimeSpec(seconds: 3, nanoseconds: 7_000).microseconds == 3_000_007)
  }

  @Test("errors are errno values")
  func errors() {
    #expect(throws: Errno.noSuchFileOrDirectory) {
      _ = try Descriptor.open("/does not exist", [.read]).rawValue
    }
    #expect(throws: Errno.notDirectory) { _ = try Descriptor.open("/dev/null", [.directory]).rawValue }
    #expect(Errno.noSuchFileOrDirectory.description == "No such file or directory")
  }

  @Test("attributes of an entry do not follow symbolic links")
  func attributes() throws {
    let folder = try TemporaryFolder()
    try (folder / "link").makeLink(to: "/")
    let directory = try withCName(folder.path.bytes) { name throws(Errno) in
      try Descriptor.open(name, [.pathOnly, .directory])
    }
    #expect(try directory.attributes(of: "link").kind == .symbolicLink)
    #expect(try directory.open("link", [.pathOnly, .noFollow]).linkTarget() == Array("/".utf8))
    #expect(try directory.contains("link"))
    #expect(try !directory.contains("none"))
  }

  @Test("a listing has all entries, with arbitrary bytes, without . and ..")
  func listing() throws {
    let folder = try TemporaryFolder()
    let names: Set<[UInt8]> = Set(
      (0..<500).map { Array("file \($0)".utf8) } + [[0xFF, 0xFE], [UInt8](repeating: 0x61, count: 255)])
    for name in names { try (folder / ByteString(name)).write("") }
    let directory = try withCName(folder.path.bytes) { name throws(Errno) in
      try Descriptor.open(name, [.read, .directory])
    }
    var found: [[UInt8]] = []
    try directory.forEachEntry { entry in
      found.append(Array(UnsafeRawBufferPointer(start: entry.name, count: entry.nameLength)))
      #expect(entry.kind == .regular)
    }
    #expect(found.count == names.count)
    #expect(Set(found) == names)
  }
}

@Suite struct LockedTests {
  @Test("the lock is exclusive")
  func exclusive() throws {
    let counter = Locked(0)
    for _ in 0..<4 {
      let thread = try Posix.Thread(name: "counter") {
        for _ in 0..<10_000 { counter.withLock { $0 += 1 } }
      }
      thread.join()
    }
    #expect(counter.withLock { $0 } == 40_000)
  }

  @Test("an interrupt ends a blocking call")
  func interrupt() throws {
    try Interrupt.installHandler()
    var ends: [CInt] = [0, 0]
    #expect(pipe(&ends) == 0)
    let input = Descriptor(owning: ends[0])
    let output = Descriptor(owning: ends[1])
    let number = input.rawValue
    let isOver = Locked(false)
    let thread = try Posix.Thread(name: "reader") {
      var byte: UInt8 = 0
      _ = Glibc.read(number, &byte, 1)
      isOver.withLock { $0 = true }
    }
    while !isOver.withLock({ $0 }) {
      thread.interrupt()
      usleep(1000)
    }
    thread.join()
    _ = output.rawValue
  }
}
