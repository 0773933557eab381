import Glibc
import Posix
import TestSupport
import Testing

/// `-o writable,passthrough`: what shows of files to which the kernel writes itself, and what is announced of them.
extension MountTests {
  @Suite struct WritePassthroughTimesTests {
    private func withPassthrough(body: (_ mount: Mount, _ fixture: Fixture) throws -> Void) throws {
      let fixture = try Fixture()
      var setup = fixture.setup
      setup.options = ["writable", "passthrough"]
      try withMount(setup) { try body($0, fixture) }
    }

    private static let pages = 32

    /// Maps a new file of `pages` pages, shared; its descriptor is closed while the body runs.
    private func withMapping(_ path: ByteString, body: (UnsafeMutableRawPointer) throws -> Void) throws {
      let size = Self.pages * 4096
      let mapping = try path.withFile(O_RDWR | O_CREAT) { file in
        #expect(ftruncate(file, off_t(size)) == 0)
        return try #require(mmap(nil, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0))
      }
      defer { munmap(mapping, size) }
      try body(mapping)
    }

    private func attributeRequests(_ mount: Mount) throws -> Int {
      RequestCounts(try mount.report())["GETATTR"]
    }

    /// Whether the kernel gives the attributes of a file without asking.
    private func areCached(_ path: ByteString, _ mount: Mount) throws -> Bool {
      _ = try path.status()
      let before = try attributeRequests(mount)
      for _ in 0..<20 { _ = try path.status() }
      return try attributeRequests(mount) - before < 10
    }

    @Test("the times of a file show what a mapping writes, until it ends", .timeLimit(.minutes(1)))
    func mappedTimes() throws {
      try withPassthrough { mount, fixture in
        let (path, below) = (mount.point / "mapped", fixture.substitution / "mapped")
        try withMapping(path) { memory in
          #expect(try eventually(within: 10) { try mount.report().passthrough?.open == 0 })
          for page in 0..<Self.pages {
            if page % 8 == 0 { try mount.barrier() }
            usleep(5000)
            // The first write to a page sets the times.
            memory.storeBytes(of: 1, toByteOffset: page * 4096, as: UInt8.self)
            let (shown, present) = (try path.status(), try below.status())
            #expect(shown.modified == present.modified && shown.changed == present.changed, "page \(page)")
          }
          #expect(try !areCached(path, mount))
        }
        #expect(try eventually(within: 10) { try areCached(path, mount) })
        #expect(try path.status().modified == below.status().modified)
      }
    }

    @Test("a successor asks for the times of what is mapped, too", .timeLimit(.minutes(1)))
    func mappedSurvival() throws {
      try withPassthrough { mount, fixture in
        let (path, below) = (mount.point / "mapped", fixture.substitution / "mapped")
        try withMapping(path) { memory in
          #expect(try eventually(within: 10) { try mount.report().passthrough?.open == 0 })
          try mount.killWorker()
          for page in 0..<Self.pages {
            usleep(5000)
            memory.storeBytes(of: 1, toByteOffset: page * 4096, as: UInt8.self)
            #expect(try path.status().modified == below.status().modified, "page \(page)")
          }
        }
        #expect(try eventually(within: 10) { try areCached(path, mount) })
      }
    }

    @Test("an opening that is not passed through reads what a mapping writes", .timeLimit(.minutes(1)))
    func mappedContent() throws {
      try withPassthrough { mount, fixture in
        let (path, below) = (mount.point / "mapped", fixture.substitution / "mapped")
        try withMapping(path) { memory in
          #expect(try eventually(within: 10) { try mount.report().passthrough?.open == 0 })
          try Command("chattr", "+a", below.text).check()
          defer { _ = try? Command("chattr", "-a", below.text).check() }
          try path.withFile(O_RDONLY) { reader in
            for round in 1...50 {
              memory.storeBytes(of: UInt8(round), toByteOffset: 9, as: UInt8.self)
              var byte: UInt8 = 0
              #expect(pread(reader, &byte, 1, 9) == 1 && byte == UInt8(round))
            }
          }
          try Command("chattr", "-a", below.text).check()
        }
      }
    }

    @Test(
      "what programs write through the mount is seen once by those that watch it", .timeLimit(.minutes(1)))
    func announcement() throws {
      try withPassthrough { mount, _ in
        let path = mount.point / "new"
        try path.write("text\n")
        try mount.barrier()
        let watcher = try MountWatcher(mount.point)
        let rounds = 60
        for round in 0..<rounds {
          try path.withFile(O_RDWR | O_APPEND) { file in
            // Every other one writes nothing.
            if round % 2 == 0 { try ByteString.put("line \(round)\n", in: file) }
          }
          if round % 3 == 2 { try mount.barrier() }
          _ = try path.status()
          if round % 5 == 0 { try mount.barrier() }
        }
        #expect(try eventually(within: 10) { try mount.report().passthrough?.open == 0 })
        for _ in 0..<3 { try mount.barrier() }
        #expect(try mount.report().announce.events == 0)
        try watcher.readEvents()
        let masks = watcher.masks("new")
        let closings = masks.filter { $0.contains(.closeWrite) }.count
        let modifications = masks.filter { $0.contains(.modified) }.count
        #expect(closings == rounds && modifications == rounds / 2)
      }
    }

    @Test("openings that follow each other fast are not announced", .timeLimit(.minutes(1)))
    func fastAnnouncement() throws {
      try withPassthrough { mount, _ in
        let path = mount.point / "new"
        try path.write("text\n")
        try mount.barrier()
        let watcher = try MountWatcher(mount.point)
        var random = SplitMix64(seed: 1)
        for round in 0..<3000 {
          try path.withFile(O_WRONLY | O_APPEND) { try ByteString.put("x", in: $0) }
          if round % 3 == 0 { usleep(UInt32.random(in: 0...3000, using: &random)) }
          if round % 100 == 0 { try watcher.readEvents() }
        }
        try mount.barrier()
        // On a busy machine an event may be handled between two openings. Hundreds are where each is handled late.
        #expect(try mount.report().announce.events < 10)
      }
    }

    @Test("no opening stays counted when workers die, and FORGET ends what is left", .timeLimit(.minutes(2)))
    func deaths() throws {
      try withPassthrough { mount, fixture in
        let names = (0..<4).map { ByteString("file\($0)") }
        for name in names { try (mount.point / name).write("x") }
        let programs = try names.map { name in
          try Child(
            Command([
              "bash", "-c",
              #"for i in {1..100000}; do exec 3<>"$0" 4<"$0"; exec 3>&- 4<&-; [ -e "$0.end" ] && exit; done"#,
              mount.point / name,
            ]))
        }
        for _ in 0..<6 { try mount.killWorker() }
        for name in names { try (fixture.substitution / (name + ".end")).write("") }
        #expect(eventually(within: 30) { programs.allSatisfy { $0.status() != nil } })
        #expect(programs.allSatisfy { $0.status() == 0 })
        let isClosed = try eventually(within: 10) { try mount.report().passthrough?.open == 0 }
        let left = try mount.report().passthrough
        #expect(isClosed, "\(String(describing: left))")
        for name in names { #expect(try eventually(within: 10) { try areCached(mount.point / name, mount) }) }
      }
    }
  }
}
