import Glibc
import Posix
import TestSupport
import Testing

/// Open and mapped files while a layer changes beneath a mount with coherent caching.
extension MountTests {
  @Suite struct OpenFileTests {
    private static let size = 3 * 1024 * 1024
    private static let old = [UInt8](repeating: UInt8(ascii: "o"), count: size)
    private static let new = [UInt8](repeating: UInt8(ascii: "n"), count: size + 1)

    /// How a file's content disappears.
    enum Replacement: CaseIterable {
      case rename
      case override
      case deletion
    }

    @Test(
      "a reader and a mapping keep the whole old content", .timeLimit(.minutes(1)),
      arguments: Replacement.allCases, ReadPath.allCases)
    func replaced(replacement: Replacement, readPath: ReadPath) throws {
      let fixture = try Fixture()
      try (fixture.main / "m").write(Self.old)
      try withMount(readPath.setup(fixture)) { mount in
        let file = try begin(mount.point / "m")
        try replace(fixture, replacement)
        try mount.barrier()
        try expectReplaced(mount.point / "m", replacement)
        #expect(file.rest() == .content(Self.old))
        #expect(file.mapped() == .content(Self.old))
        // Later accesses see the new file.
        try expectReplaced(mount.point / "m", replacement)
      }
    }

    @Test(
      "with few descriptors, the old content is whole or reads fail with ESTALE", .timeLimit(.minutes(1)),
      arguments: Replacement.allCases)
    func fewDescriptors(replacement: Replacement) throws {
      let fixture = try Fixture()
      try (fixture.main / "m").write(Self.old)
      try withMount(try fewDescriptorsSetup(fixture)) { mount in
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

    @Test("a hidden file whose descriptor was evicted shows a change in place", .timeLimit(.minutes(1)))
    func hiddenFileWithoutDescriptor() throws {
      let fixture = try Fixture()
      try (fixture.main / "d").makeDirectory()
      try (fixture.main / "d/file").write("before")
      try withMount(try fewDescriptorsSetup(fixture)) { mount in
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
      "an open reader and a mapping see a change in place", .timeLimit(.minutes(1)),
      arguments: ReadPath.allCases)
    func changedInPlace(readPath: ReadPath) throws {
      let fixture = try Fixture()
      try (fixture.main / "m").write(Self.old)
      try withMount(readPath.setup(fixture)) { mount in
        let file = try begin(mount.point / "m")
        #expect(file.mapped() == .content(Self.old))
        var expected = Self.old
        for round in 0..<20 {
          let offset = round * 150_000 + 17
          let patch = [UInt8](repeating: UInt8(ascii: "a") + UInt8(round), count: 9000)
          expected.replaceSubrange(offset..<offset + patch.count, with: patch)
          let time = try (fixture.main / "m").status().modified
          try (fixture.main / "m").overwrite(patch, at: offset)
          if round % 2 == 1 && Mount.hasControl { try (fixture.main / "m").setModified(time) }
          try mount.barrier()
          // Without the daemon's notifications, the kernel notices the change at the next GETATTR.
          if !Mount.hasControl { _ = try (mount.point / "m").status() }
          #expect(file.whole() == .content(expected), "round \(round)")
          #expect(file.mapped() == .content(expected), "round \(round)")
        }
      }
    }

    @Test(
      "an open reader sees a file grow and shrink", .timeLimit(.minutes(1)),
      arguments: ReadPath.allCases)
    func resizedInPlace(readPath: ReadPath) throws {
      let fixture = try Fixture()
      try (fixture.main / "m").write("one")
      try withMount(readPath.setup(fixture)) { mount in
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

    // MARK: - Helpers

    /// A mount with far more files than its daemon may have descriptors.
    private func fewDescriptorsSetup(_ fixture: Fixture) throws -> MountSetup {
      try (fixture.main / "many").makeDirectory()
      for number in 0..<400 { try (fixture.main / "many" / ByteString("\(number)")).write("file \(number)") }
      var setup = fixture.setup
      setup.descriptorLimit = 64
      return setup
    }

    /// Opens and maps a file, and reads a part through both.
    private func begin(_ path: ByteString) throws -> OpenMappedFile {
      let file = try OpenMappedFile(path)
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

/// How reads are served.
enum ReadPath: ByteString, CaseIterable {
  /// READ requests.
  case requests = ""
  /// Passthrough by the kernel, for all files.
  case passthrough = "passthrough=0"

  func setup(_ fixture: Fixture) -> MountSetup {
    var setup = fixture.setup
    if self != .requests { setup.options.append(rawValue) }
    return setup
  }
}
