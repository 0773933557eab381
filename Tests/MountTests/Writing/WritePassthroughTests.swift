import Glibc
import Posix
import TestSupport
import Testing

/// `-o writable,passthrough`: the kernel reads and writes the upper layer's files itself.
extension MountTests {
  @Suite struct WritePassthroughTests {
    private func withPassthrough(
      _ options: ByteString..., body: (_ mount: Mount, _ fixture: Fixture) throws -> Void
    ) throws {
      let fixture = try Fixture()
      var setup = fixture.setup
      setup.options = ["writable", "passthrough"] + options
      try withMount(setup) { try body($0, fixture) }
    }

    private func opened(_ mount: Mount) throws -> Int { try #require(try mount.report().passthrough).opened }

    @Test("files of the upper layer cause neither WRITE nor READ", .timeLimit(.minutes(1)))
    func requests() throws {
      try withPassthrough { mount, fixture in
        let (path, below) = (mount.point / "new", fixture.substitution / "new")
        var content: [UInt8] = []
        try path.withFile(O_RDWR | O_CREAT) { file in
          for round in 0..<100 {
            let text = "round \(round)\n"
            content += Array(text.utf8)
            try ByteString.put(text, in: file)
            #expect(try below.read() == content && path.status().size == UInt64(content.count))
          }
        }
        #expect(try path.read() == content)
        try mount.barrier()
        #expect(try mount.report().announce.events == 0, "the programs that wrote have the events already")
        let requests = RequestCounts(try mount.report())
        // The barrier is one WRITE.
        #expect(requests["WRITE"] == 1 && requests["READ"] == 0, "\(requests)")
        #expect(try opened(mount) == 2)
      }
    }

    @Test("what was written shows at once, by each way to ask for it", .timeLimit(.minutes(2)))
    func coherence() throws {
      try withPassthrough { mount, _ in
        let path = mount.point / "folder/log"
        var size: UInt64 = 0
        for round in 0..<300 {
          let text = "line \(round)\n"
          try path.withFile(O_WRONLY | O_CREAT | O_APPEND) { try ByteString.put(text, in: $0) }
          size += UInt64(text.utf8.count)
          // The listing gives the kernel attributes, too.
          #expect(try (mount.point / "folder").names().contains("log"))
          #expect(try path.status().size == size && path.readText().hasSuffix(text), "round \(round)")
        }
      }
    }

    @Test(
      "a file of a layer below is written to by requests until all have closed it", .timeLimit(.minutes(1)))
    func copyUp() throws {
      try withPassthrough { mount, fixture in
        let path = mount.point / "plain.txt"
        try path.withFile(O_RDONLY) { reader in
          try path.withFile(O_RDWR) { writer in
            #expect(!(fixture.substitution / "plain.txt").exists, "nothing is copied before a write")
            try ByteString.put("MINE", in: writer, at: 0)
            #expect(try ByteString.text(of: reader) == "MINE's plain\n")
          }
          // The kernel would refuse a backing file.
          try path.withFile(O_RDWR) { try ByteString.put("OURS", in: $0, at: 0) }
          #expect(try ByteString.text(of: reader) == "OURS's plain\n")
        }
        let isClosed = try eventually(within: 10) {
          let before = try opened(mount)
          try path.withFile(O_RDWR) { try ByteString.put("LAST", in: $0, at: 0) }
          return try opened(mount) > before
        }
        #expect(try isClosed && path.readText() == "LAST's plain\n")
        try expectUntouchedMain(fixture)
      }
    }

    @Test("mappings, writes, truncation and allocation are of one file", .timeLimit(.minutes(1)))
    func mapping() throws {
      try withPassthrough { mount, fixture in
        let (path, below) = (mount.point / "mapped", fixture.substitution / "mapped")
        try path.withFile(O_RDWR | O_CREAT) { file in
          #expect(ftruncate(file, 8192) == 0)
          let memory = try #require(mmap(nil, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0))
          defer { munmap(memory, 8192) }
          memory.storeBytes(of: UInt8(ascii: "m"), as: UInt8.self)
          #expect(try below.read().first == UInt8(ascii: "m"))
          try ByteString.put("w", in: file, at: 5000)
          #expect(memory.load(fromByteOffset: 5000, as: UInt8.self) == UInt8(ascii: "w"))
          try below.overwrite([UInt8(ascii: "b")], at: 6000)
          #expect(memory.load(fromByteOffset: 6000, as: UInt8.self) == UInt8(ascii: "b"))
          try ByteString.allocate(file, mode: 0, at: 0, count: 20_000)
          #expect(try path.status().size == 20_000 && below.status().size == 20_000)
          #expect(ftruncate(file, 10) == 0)
          #expect(try path.status().size == 10 && ByteString.text(of: file).utf8.count == 10)
        }
      }
    }

    @Test("two programs append, and overwrite no line", .timeLimit(.minutes(1)))
    func appending() throws {
      try withPassthrough { mount, fixture in
        let path = mount.point / "log"
        try path.write("")
        let writers = try (0..<2).map { number in
          try Child(
            Command([
              "bash", "-c", #"exec 3>>"$0"; for i in {1..2000}; do echo "$1 $i" >&3; done"#, path,
              ByteString("\(number)"),
            ]))
        }
        #expect(eventually(within: 40) { writers.allSatisfy { $0.status() != nil } })
        let lines = try path.readText().split(separator: "\n")
        let all = (0..<2).flatMap { number in (1...2000).map { "\(number) \($0)" } }
        #expect(lines.map(String.init).sorted() == all.sorted())
        #expect(try (fixture.substitution / "log").read() == path.read())
      }
    }

    @Test("a file that was removed while open lives on", .timeLimit(.minutes(1)))
    func unlinked() throws {
      try withPassthrough { mount, fixture in
        for name in ["new", "replaced.txt", "plain.txt"] as [ByteString] {
          let path = mount.point / name
          if name == "new" { try path.write("new\n") }
          try path.withFile(O_RDWR) { file in
            try path.remove()
            try path.write("another\n")
            try ByteString.put("written after", in: file, at: 0)
            try ByteString("/proc/self/fd/\(file)").withFile(O_RDWR) {
              try ByteString.put("W", in: $0, at: 0)
            }
            #expect(try ByteString.text(of: file).hasPrefix("Written after"))
            #expect(try path.readText() == "another\n")
          }
        }
        try expectUntouchedMain(fixture)
      }
    }

    @Test("open files are written to while the worker is replaced", .timeLimit(.minutes(1)))
    func survival() throws {
      try withPassthrough { mount, fixture in
        let (path, below) = (mount.point / "new", fixture.substitution / "new")
        let copied = mount.point / "plain.txt"
        for replace in [{ try $0.killWorker() }, { try $0.command("upgrade") }] as [(Mount) throws -> Void] {
          try path.withFile(O_RDWR | O_CREAT) { file in
            try copied.withFile(O_RDWR) { cached in
              try ByteString.put("before", in: file, at: 0)
              try ByteString.put("Cached", in: cached, at: 0)
              try replace(mount)
              try ByteString.put("BE", in: file, at: 0)
              // The kernel demands the backing file, or none, as it has for the open one.
              try path.withFile(O_RDWR) { try ByteString.put("after", in: $0, at: 6) }
              try copied.withFile(O_RDWR) { try ByteString.put("S", in: $0, at: 0) }
              #expect(try ByteString.text(of: file) == "BEforeafter" && path.status().size == 11)
              #expect(try ByteString.text(of: cached).hasPrefix("Sached"))
            }
          }
          #expect(try path.readText() == "BEforeafter" && below.readText() == "BEforeafter")
          let isClosed = try eventually(within: 10) { try mount.report().passthrough?.open == 0 }
          #expect(isClosed)
          try path.remove()
        }
      }
    }

    @Test("edits of the layer show while a file is open for writing, and afterwards", .timeLimit(.minutes(1)))
    func edits() throws {
      try withPassthrough { mount, fixture in
        let (path, below) = (mount.point / "shared", fixture.substitution / "shared")
        try path.write([UInt8](repeating: 0, count: 4096))
        for isOpen in [true, false, true] {
          let file = isOpen ? try path.call("open") { open($0, O_RDWR | O_CLOEXEC) } : -1
          defer { if isOpen { close(file) } }
          for number in 1..<100 {
            try path.overwrite([UInt8(number)], at: number)
            try below.overwrite([UInt8](repeating: UInt8(number), count: 10), at: 4000 + number)
            if number % 10 != 0 { continue }
            try mount.barrier()
            #expect(try path.read() == below.read() && path.status().size == below.status().size)
          }
        }
        try path.withFile(O_RDWR) { file in
          try below.replace("replaced\n")
          try mount.barrier()
          try ByteString.put("lost", in: file, at: 0)
          #expect(try path.readText() == "replaced\n")
        }
      }
    }

    @Test("an edit of the layer is announced once, and causes no event in the layer", .timeLimit(.minutes(1)))
    func announcement() throws {
      try withPassthrough { mount, fixture in
        try (mount.point / "ours").write("ours\n")
        try mount.barrier()
        let (watcher, below) = (try MountWatcher(mount.point), try MountWatcher(fixture.substitution))
        try (fixture.substitution / "ours").overwrite(Array("theirs".utf8), at: 0)
        #expect(try watcher.receives(.closeWrite, "ours"))
        try mount.barrier()
        try (fixture.substitution / "last").write("last\n")
        #expect(try watcher.receives(.closeWrite, "last") && below.receives(.closeWrite, "last"))
        for seen in [watcher, below] {
          #expect(seen.masks("ours").filter { $0.contains(.closeWrite) }.count == 1)
        }
      }
    }

    @Test("a write by another user takes the set-user-ID bit away at once", .timeLimit(.minutes(1)))
    func setUserID() throws {
      try withPassthrough("allow_other") { mount, fixture in
        let (path, below) = (mount.point / "program", fixture.substitution / "program")
        try path.write("text")
        try path.setOwner(1000, group: 1000)
        try path.setMode(0o666)
        try asFileSystemUser(1001) {
          try path.withFile(O_WRONLY) { file in
            // It could not be opened by this user any more.
            try Command("chmod", "4755", below.text).check()
            #expect(try eventually(within: 10) { try path.status().permissions == 0o4755 })
            try ByteString.put("evil", in: file, at: 0)
            #expect(try path.status().permissions == 0o755 && below.status().permissions == 0o755)
          }
        }
      }
    }

    @Test("an append-only file is appended to by requests", .timeLimit(.minutes(1)))
    func appendOnly() throws {
      try withPassthrough { mount, fixture in
        let path = mount.point / "log"
        try path.write("first\n")
        try Command("chattr", "+a", (fixture.substitution / "log").text).check()
        defer { _ = try? Command("chattr", "-a", (fixture.substitution / "log").text).check() }
        // The kernel says later that the file was closed.
        #expect(try eventually(within: 10) { try mount.report().passthrough?.open == 0 })
        let before = try opened(mount)
        try path.withFile(O_WRONLY | O_APPEND) { try ByteString.put("second\n", in: $0) }
        try expectErrno(.notPermitted) { try path.withFile(O_WRONLY) { _ in } }
        #expect(try opened(mount) == before && (fixture.substitution / "log").readText() == "first\nsecond\n")
      }
    }

    @Test("a program that was written can be executed at once", .timeLimit(.minutes(1)))
    func execution() throws {
      try withPassthrough { mount, _ in
        for round in 0..<20 {
          let program = mount.point / ByteString("program\(round)")
          try program.write("#!/bin/sh\necho \(round)\n")
          try program.setMode(0o755)
          #expect(try Command([program]).run(timeout: 20).outputText == "\(round)\n")
        }
      }
    }
  }
}
