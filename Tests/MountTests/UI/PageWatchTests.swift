import Glibc
import Posix
import Routing
import TestSupport
import Testing

/// What `bundlefs ui` watches for a page: the layers, so that programs that use the mount pay nothing, or the mount itself.
extension MountTests {
  @Suite struct PageWatchTests {
    /// The layers top and main, with a few files.
    private struct Sample {
      let folder: TemporaryFolder
      let setup: MountSetup
      let top: ByteString
      let main: ByteString

      init(_ options: [ByteString] = []) throws {
        folder = try TemporaryFolder()
        (top, main) = (try folder.folder("top"), try folder.folder("main"))
        for layer in [top, main] {
          try (layer / "folder/inner").makeDirectories()
          try (layer / "both.txt").write("both\n")
        }
        try (main / "folder/below.txt").write("below\n")
        try (main / "folder/hidden.txt").write("hidden\n")
        try (top / "folder/.wh.hidden.txt").write("")
        try (main / "fr.lproj").makeDirectory()
        var setup = MountSetup(main: main, point: try folder.folder("mount"), substitutions: [top])
        setup.options = options
        self.setup = setup
      }
    }

    /// The masks of the watches that a process has on the mount's directories.
    private func masks(of process: Child, on mount: Mount) throws -> [UInt32] {
      var status = stat()
      _ = try mount.point.call("lstat") { lstat($0, &status) }
      // The kernel's own form of a device number.
      let (major, minor) = majorMinor(UInt64(status.st_dev))
      let device = String(UInt64(major) << 20 | UInt64(minor), radix: 16)
      let folder = ByteString("/proc/\(process.pid)/fdinfo")
      let lines = try folder.names().flatMap { name -> [Substring] in
        // Descriptors come and go meanwhile.
        ((try? (folder / name).readText()) ?? "").split(separator: "\n")
      }
      return lines.filter { $0.hasPrefix("inotify ") && $0.contains(" sdev:\(device) ") }.compactMap { line in
        line.split(separator: " ").first { $0.hasPrefix("mask:") }.flatMap {
          UInt32($0.dropFirst(5), radix: 16)
        }
      }
    }

    /// Changes a file until the page hears of it: what changes before the watches are set is not reported.
    private func awaitWatches(_ stream: PageConnection, _ file: ByteString) throws {
      var number = 0
      try stream.read(
        until: String(file.text.split(separator: "/").last ?? ""),
        acting: {
          number += 1
          try file.write("\(number)")
        })
    }

    @Test(
      "the mount's directories are watched only where the layers do not tell all", .timeLimit(.minutes(2)))
    func watches() throws {
      let content = UInt32(IN_MODIFY | IN_CLOSE_WRITE | IN_CREATE | IN_ATTRIB)
      let cases: [([ByteString], isMount: Bool)] = [
        ([], false), (["case=insensitive"], true), (["strings=merge"], true), (["hide=*.tmp"], true),
        (["announce=off"], false),
      ]
      for (options, isMount) in cases {
        let sample = try Sample(options)
        try withMount(sample.setup) { mount in
          let server = try PageServer(mount)
          let stream = try server.events()
          // A mount without announcements sends no events of its layers.
          try awaitWatches(stream, sample.top / "first.txt")
          let masks = try masks(of: server.process, on: mount)
          #expect(masks.contains { $0 & content != 0 } == isMount, "\(options): \(masks)")
          #expect(masks.count >= 1, "the end of a mount is always watched")
          #expect(try server.interrupt().status == 0)
        }
      }
    }

    @Test("a mount over MAIN is watched itself", .timeLimit(.minutes(1)))
    func covered() throws {
      let sample = try Sample()
      var setup = sample.setup
      setup.point = sample.main
      try withMount(setup) { mount in
        let server = try PageServer(mount)
        let stream = try server.events()
        try awaitWatches(stream, sample.top / "folder/first.txt")
        #expect(try masks(of: server.process, on: mount).count > 2)
        #expect(try server.interrupt().status == 0)
      }
    }

    @Test(
      "changes are reported by their paths in the mount, unless a layer above covers them",
      .timeLimit(.minutes(1)))
    func paths() throws {
      let sample = try Sample()
      let laid = try sample.folder.folder("laid")
      try (laid / "deep").makeDirectory()
      var setup = sample.setup
      setup.substitutions = []
      setup.options = [ByteString("substitution=\(sample.top.text):\(laid.text)@/folder/laid")]
      try withMount(setup) { mount in
        let server = try PageServer(mount)
        let stream = try server.events()
        try awaitWatches(stream, sample.top / "first.txt")
        // Covered by a file and by a whiteout of the layer above.
        try (sample.main / "both.txt").write("changed below\n")
        try (sample.main / "folder/hidden.txt").write("changed below\n")
        try (sample.top / "folder/.wh.below.txt").write("")
        #expect(try stream.read(until: "folder/below.txt").contains("event: change"))
        try (laid / "deep/laid.txt").write("laid\n")
        let events = try stream.read(until: "folder/laid/deep/laid.txt")
        #expect(!events.contains("both.txt") && !events.contains("hidden.txt"), "\(events)")
        // What comes to light again.
        try (sample.top / "both.txt").remove()
        _ = try stream.read(until: "both.txt")
        // Directories that come later are watched, and an opaque one is reported as a whole.
        try (sample.top / "late/inner").makeDirectories()
        try awaitWatches(stream, sample.top / "late/inner/last.txt")
        try (sample.top / "late/inner/.wh..wh..opq").write("")
        _ = try stream.read(until: #""path":"late/inner""#)
        #expect(try server.interrupt().status == 0)
      }
    }

    @Test(
      "what is reported is visible in the mount, and leaves no result in the control file",
      .timeLimit(.minutes(2)))
    func visible() throws {
      let sample = try Sample()
      try withMount(sample.setup) { mount in
        let server = try PageServer(mount)
        let stream = try server.events()
        try awaitWatches(stream, sample.top / "first.txt")
        let results = try server.json("/api/mounts/0/status")["results"]
        for number in 0..<50 {
          // The kernel knows each name as one that does not exist.
          let name = ByteString("new\(number).txt")
          #expect(throws: (any Error).self) { try (mount.point / name).status() }
          try (sample.top / name).write("new")
          _ = try stream.read(until: "new\(number).txt")
          #expect(try (mount.point / name).readText() == "new")
        }
        #expect(try server.json("/api/mounts/0/status")["results"] == results)
        #expect(try server.interrupt().status == 0)
      }
    }

    @Test("a layer that is replaced is watched again", .timeLimit(.minutes(2)))
    func replaced() throws {
      let sample = try Sample()
      let outer = try sample.folder.folder("outer")
      let deep = outer / "holder"
      try (deep / "layer").makeDirectories()
      var setup = sample.setup
      setup.substitutions = [deep / "layer"]
      try withMount(setup) { mount in
        let server = try PageServer(mount)
        let stream = try server.events()
        try awaitWatches(stream, deep / "layer/first.txt")
        // No watch of the layer or its folder reports that.
        try deep.rename(to: outer / "former")
        try (deep / "layer").makeDirectories()
        try awaitWatches(stream, deep / "layer/second.txt")
        let last = outer / "next"
        try (last / "layer").makeDirectories()
        try (deep / "layer").rename(to: outer / "former/old")
        try (last / "layer").rename(to: deep / "layer")
        try awaitWatches(stream, deep / "layer/third.txt")
        #expect(try server.interrupt().status == 0)
      }
    }
  }
}
