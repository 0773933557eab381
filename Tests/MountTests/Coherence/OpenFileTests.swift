import Glibc
import Posix
import TestSupport
import Testing

/// Programs that have files open, mapped or stand in folders while a layer changes under a mount that caches.
extension MountTests {
  @Suite struct OpenFileTests {
    private static let size = 3 * 1024 * 1024
    private static let old = [UInt8](repeating: UInt8(ascii: "o"), count: size)
    private static let new = [UInt8](repeating: UInt8(ascii: "n"), count: size + 1)

    /// How a file is replaced.
    enum Replacement: CaseIterable {
      case rename
      case override
      case deletion
    }

    @Test(
      "a reader and a mapping keep the old content whole", .timeLimit(.minutes(1)),
      arguments: Replacement.allCases, Reading.allCases)
    func replaced(replacement: Replacement, reading: Reading) throws {
      let fixture = try Fixture()
      try (fixture.main / "m").write(Self.old)
      try withMount(reading.setup(fixture)) { mount in
        let file = try begin(mount.point / "m")
        try replace(fixture, replacement)
        try mount.barrier()
        try expectReplaced(mount.point / "m", replacement)
        #expect(file.rest() == .content(Self.old))
        #expect(file.mapped() == .content(Self.old))
        // And what comes after that belongs to the new one.
        try expectReplaced(mount.point / "m", replacement)
      }
    }

    @Test(
      "the same when the daemon has hardly any descriptors: whole or ESTALE", .timeLimit(.minutes(1)),
      arguments: Replacement.allCases)
    func fewDescriptors(replacement: Replacement) throws {
      let fixture = try Fixture()
      try (fixture.main / "m").write(Self.old)
      try withMount(try hardPressedSetup(fixture)) { mount in
        let file = try begin(mount.point / "m")
        try readAll(mount.point / "many")
        try replace(fixture, replacement)
        try mount.barrier()
        try readAll(mount.point / "many")
        for seen in [file.rest(), file.mapped()] {
          #expect(seen == .content(Self.old) || seen == .stale, "\(seen)")
        }
        try expectReplaced(mount.point / "m", replacement)
      }
    }

    @Test("a hidden file that is read without a descriptor shows a change in place", .timeLimit(.minutes(1)))
    func hiddenWithoutDescriptor() throws {
      let fixture = try Fixture()
      try (fixture.main / "d").makeDirectory()
      try (fixture.main / "d/file").write("before")
      try withMount(try hardPressedSetup(fixture)) { mount in
        try (mount.point / "d/file").withOpen(O_RDONLY) { file in
          #expect(try ByteString.readAll(file) == [UInt8]("before".utf8))
          try readAll(mount.point / "many")
          try (fixture.substitution / "d").makeDirectory()
          try (fixture.substitution / "d/.wh..wh..opq").write("")
          try mount.barrier()
          try readAll(mount.point / "many")
          try (fixture.main / "d/file").write("after, and longer")
          try mount.barrier()
          lseek(file, 0, SEEK_SET)
          #expect(try ByteString.readAll(file) == [UInt8]("after, and longer".utf8))
        }
      }
    }

    @Test(
      "a change in place is shown to an open reader and a mapping", .timeLimit(.minutes(1)),
      arguments: Reading.allCases)
    func changedInPlace(reading: Reading) throws {
      let fixture = try Fixture()
      try (fixture.main / "m").write(Self.old)
      try withMount(reading.setup(fixture)) { mount in
        let file = try begin(mount.point / "m")
        #expect(file.mapped() == .content(Self.old))
        var expected = Self.old
        for round in 0..<20 {
          let place = round * 150_000 + 17
          let patch = [UInt8](repeating: UInt8(ascii: "a") + UInt8(round), count: 9000)
          expected.replaceSubrange(place..<place + patch.count, with: patch)
          let time = try (fixture.main / "m").status().modified
          try (fixture.main / "m").overwrite(patch, at: place)
          if round % 2 == 1 && Mount.hasControl { try (fixture.main / "m").setModified(time) }
          try mount.barrier()
          // Without caches of the daemon's, the kernel notices with the next look at the file.
          if !Mount.hasControl { _ = try (mount.point / "m").status() }
          #expect(file.whole() == .content(expected), "round \(round)")
          #expect(file.mapped() == .content(expected), "round \(round)")
        }
      }
    }

    @Test(
      "a file that grows and shrinks does so for its open reader", .timeLimit(.minutes(1)),
      arguments: Reading.allCases)
    func resizedInPlace(reading: Reading) throws {
      let fixture = try Fixture()
      try (fixture.main / "m").write("one")
      try withMount(reading.setup(fixture)) { mount in
        try (mount.point / "m").withOpen(O_RDONLY) { file in
          #expect(try ByteString.readAll(file) == [UInt8]("one".utf8))
          for round in 0..<20 {
            let content = [UInt8](repeating: UInt8(ascii: "a") + UInt8(round), count: round * 7919 % 20_000)
            try (fixture.main / "m").write(content)
            try mount.barrier()
            try #require(try ByteString.status(of: file).size == Int64(content.count), "round \(round)")
            lseek(file, 0, SEEK_SET)
            try #require(try ByteString.readAll(file) == content, "round \(round)")
          }
        }
      }
    }

    // MARK: - Parts

    /// A mount with many files more than its daemon may have descriptors.
    private func hardPressedSetup(_ fixture: Fixture) throws -> MountSetup {
      try (fixture.main / "many").makeDirectory()
      for number in 0..<400 { try (fixture.main / "many" / ByteString("\(number)")).write("file \(number)") }
      var setup = fixture.setup
      setup.descriptorLimit = 64
      return setup
    }

    /// Opens and maps a file and uses both, a little.
    private func begin(_ path: ByteString) throws -> UsedFile {
      let file = try UsedFile(path)
      #expect(file.first(1000) == .content([UInt8](Self.old.prefix(1000))))
      #expect(file.mapped(in: 0..<4096) == .content([UInt8](Self.old.prefix(4096))))
      return file
    }

    private func replace(_ fixture: Fixture, _ replacement: Replacement) throws {
      switch replacement {
      case .rename: try (fixture.main / "m").replace(Self.new)
      case .override: try (fixture.substitution / "m").replace(Self.new)
      case .deletion: try (fixture.main / "m").remove()
      }
    }

    private func expectReplaced(_ path: ByteString, _ replacement: Replacement) throws {
      if replacement == .deletion {
        try expectErrno(.noSuchFileOrDirectory) { _ = try path.status() }
      } else {
        #expect(try path.status().size == Int64(Self.new.count))
        #expect(try path.read() == Self.new)
      }
    }

    private func readAll(_ folder: ByteString) throws {
      let names = try folder.names()
      #expect(names.count == 400)
      for name in names { #expect(try (folder / name).readText() == "file \(name.text)") }
    }
  }
}

/// Which way content takes.
enum Reading: ByteString, CaseIterable {
  case byRequests = ""
  /// All files are passed through.
  case byKernel = "passthrough=0"

  func setup(_ fixture: Fixture) -> MountSetup {
    var setup = fixture.setup
    if self != .byRequests { setup.options.append(rawValue) }
    return setup
  }
}

/// An open and mapped file.
final class UsedFile {
  enum Seen: Equatable, CustomStringConvertible {
    case content([UInt8])
    case stale
    case failed(Errno)

    var description: String {
      switch self {
      case .content(let content): "\(content.count) bytes, \(Set(content).sorted().prefix(5))"
      case .stale: "ESTALE"
      case .failed(let errno): errno.description
      }
    }
  }

  private let file: CInt
  private let map: UnsafeMutableRawPointer
  private let size: Int
  /// Takes what is copied from the mapping: a write answers EFAULT where an access would be SIGBUS.
  private let copy: CInt

  init(_ path: ByteString) throws {
    file = try path.call("open") { open($0, O_RDONLY | O_CLOEXEC) }
    size = Int(try ByteString.status(of: file).size)
    guard let map = mmap(nil, size, PROT_READ, MAP_SHARED, file, 0), map != MAP_FAILED else {
      throw DiskError("mmap", path, .current)
    }
    self.map = map
    var template = [CChar]("/tmp/bundlefs-tests-copy.XXXXXX".utf8CString)
    copy = mkstemp(&template)
    if copy < 0 { throw DiskError("mkstemp", "/tmp", .current) }
    unlink(template)
  }

  deinit {
    munmap(map, size)
    close(file)
    close(copy)
  }

  /// The beginning, read from the start.
  func first(_ count: Int) -> Seen {
    lseek(file, 0, SEEK_SET)
    var content = [UInt8](repeating: 0, count: count)
    let got = read(file, &content, count)
    return got < 0 ? failure : .content([UInt8](content.prefix(got)))
  }

  /// Reads from where the last read ended to the end; with what was read before, it is the whole.
  func rest() -> Seen {
    let place = lseek(file, 0, SEEK_CUR)
    guard case .content(let before) = content(from: 0, to: place) else { return .stale }
    guard case .content(let rest) = content(from: place, to: .max) else { return .stale }
    return .content(before + rest)
  }

  /// Reads all of it.
  func whole() -> Seen { content(from: 0, to: .max) }

  /// All that the mapping shows, or a part of it.
  func mapped(in range: Range<Int>? = nil) -> Seen {
    let range = range ?? 0..<size
    var place = range.lowerBound
    while place < range.upperBound {
      let got = pwrite(copy, map + place, min(65536, range.upperBound - place), off_t(place))
      if got < 0 { return errno == EFAULT ? .stale : failure }
      place += got
    }
    var content = [UInt8](repeating: 0, count: range.count)
    let got = pread(copy, &content, content.count, off_t(range.lowerBound))
    return .content([UInt8](content.prefix(max(0, got))))
  }

  private func content(from start: Int, to end: Int) -> Seen {
    var content: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65536)
    var place = start
    while place < end {
      let got = pread(file, &buffer, min(buffer.count, end - place), off_t(place))
      if got < 0 { return failure }
      if got == 0 { break }
      content += buffer[..<got]
      place += got
    }
    lseek(file, place, SEEK_SET)
    return .content(content)
  }

  private var failure: Seen { errno == ESTALE ? .stale : .failed(.current) }
}
