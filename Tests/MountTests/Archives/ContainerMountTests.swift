import Glibc
import Posix
import TestSupport
import Testing

/// Layers that are tar or 7z archives.
extension MountTests {
  @Suite struct ContainerMountTests {
    static let formats = ["tar", "tar.gz", "tar.bz2", "tar.xz", "tar.zst", "7z"]

    @Test(
      "every random archive shows what Python's model of it has, in whatever order it is read",
      .timeLimit(.minutes(5)), arguments: formats)
    func model(format: String) throws {
      let folder = try TemporaryFolder()
      let script = ByteString(#filePath).parent / "container_model.py"
      for seed in 0..<4 {
        let (archive, number) = (folder / "archive", ByteString("\(seed)"))
        try Command(["python3", script, "make", number, ByteString(format), archive]).check()
        var setup = MountSetup(main: archive, point: try folder.folder("mount" + number))
        // Less than many of the entries.
        if seed % 2 == 1 { setup.options = ["cache_size=100K"] }
        try withMount(setup) { mount in
          let outcome = try Command(["python3", script, "check", archive, mount.point, number]).check(
            timeout: 100)
          let lines = outcome.outputText.split(separator: "\n")
          #expect(lines.count == 1, "\(format), seed \(seed): \(lines.prefix(5))")
          #expect(lines.last.flatMap { Int($0) } ?? 0 >= 5)
        }
      }
    }

    /// Runs a script that writes archives by Python's tarfile into a folder.
    private func write(_ script: String, in folder: ByteString) throws {
      let head = """
        import bz2, gzip, io, lzma, os, random, sys, tarfile
        os.chdir(sys.argv[1])
        def add(archive, name, data=b"", **fields):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            for key, value in fields.items(): setattr(info, key, value)
            archive.addfile(info, io.BytesIO(data))

        """
      try Command(["python3", "-c", ByteString(head + script), folder]).check()
    }

    @Test("unsafe, repeated and impossible names are skipped and counted", .timeLimit(.minutes(1)))
    func names() throws {
      let folder = try TemporaryFolder()
      try write(
        """
        with tarfile.open("a.tar.gz", "w:gz") as archive:
            for name in ["/absolute", "../up", "d/../../up", "same", "same", "d", "d/below", "n" * 300]: add(archive, name, name.encode())
            add(archive, "fifo", type=tarfile.FIFOTYPE)
            add(archive, "lost", type=tarfile.LNKTYPE, linkname="nothing")
            add(archive, "/".join(["x"] * 10000), b"deep")
            add(archive, "whole", b"whole")
        """, in: folder.path)
      try withMount(MountSetup(main: folder / "a.tar.gz", point: try folder.folder("mount"))) { mount in
        #expect(try mount.names() == ["absolute", "d", "same", "whole"])
        let status = try Command([try Binary.underTest(), "status", mount.point]).check().outputText
        for line in [
          "tar.gz archive: entries 12; files 4",
          "skipped 2 ('..' in the path)",
          "skipped 2 (too long)", "skipped 1 (the same name again", "skipped 1 (both a file and a folder)",
          "skipped 1 (a device, FIFO or socket)", "skipped 1 (a link to nothing)",
        ] { #expect(status.contains(line), "\(line) is not in:\n\(status)") }
      }
    }

    @Test(
      "a mount shows absolute names without their slashes, and says if all entries of an archive are skipped")
    func skippedEntries() throws {
      let folder = try TemporaryFolder()
      try write(
        """
        for name, prefix in [("absolute", "/"), ("outside", "../")]:
            with tarfile.open(name, "w") as archive:
                for entry in "ab": add(archive, prefix + entry, b"text")
        """, in: folder.path)
      _ = try folder.folder("main")
      let setup = MountSetup(
        main: folder / "main", point: try folder.folder("mount"),
        substitutions: [folder / "absolute", folder / "outside"])
      let outcome = try setup.command(foreground: false).check()
      defer { MountTable.abandon(setup.point) }
      let names = try setup.point.names().filter { $0 != ".routes" }
      #expect(names == ["a", "b"])
      let line =
        "substitution \(folder / "outside"): none of its entries is visible; skipped: 2 ('..' in the path)"
      #expect(outcome.errorText.split(separator: "\n").map(String.init) == ["bundlefs: " + line])
    }

    @Test(
      "whiteouts of an image's layer hide what is below it", .timeLimit(.minutes(1)),
      arguments: ["tar", "tar.gz"])
    func whiteouts(format: String) throws {
      let folder = try TemporaryFolder()
      _ = try (folder.folder("main"), folder.folder("main/opaque"))
      for name: ByteString in ["gone", "kept", "opaque/old", "removed"] {
        try (folder / "main" / name).write("main")
      }
      try write(
        """
        with tarfile.open("layer", "w:gz" if "\(format)" == "tar.gz" else "w") as archive:
            add(archive, "./.wh.gone")
            add(archive, "opaque", type=tarfile.DIRTYPE, mode=0o755)
            add(archive, "opaque/.wh..wh..opq")
            add(archive, "opaque/new", b"layer")
            add(archive, "removed", type=tarfile.CHRTYPE)
        """, in: folder.path)
      let setup = MountSetup(
        main: folder / "main", point: try folder.folder("mount"), substitutions: [folder / "layer"])
      try withMount(setup) { mount in
        let names = try (mount.names(), (mount.point / "opaque").names())
        #expect(names.0 == ["kept", "opaque"] && names.1 == ["new"])
      }
    }

    @Test("archives in archives, and folders in them", .timeLimit(.minutes(1)))
    func nested() throws {
      let folder = try TemporaryFolder()
      let inner = ZipBuilder([.init("d/file", "in a zip", .deflated)]).bytes
      try (folder / "in.zip").write(inner)
      try write(
        """
        import zipfile
        with tarfile.open("in.tar.xz", "w:xz") as archive: add(archive, "d/file", b"in a tar")
        for name, mode in [("out.tar", "w"), ("out.tar.gz", "w:gz")]:
            with tarfile.open(name, mode) as archive:
                for inner in ["in.zip", "in.tar.xz"]: archive.add(inner)
        with zipfile.ZipFile("out.zip", "w") as archive: archive.write("in.tar.xz")
        """, in: folder.path)
      for (path, text) in [
        ("out.tar!/in.zip!/d", "in a zip"), ("out.tar!/in.tar.xz!/d", "in a tar"),
        ("out.zip!/in.tar.xz!/d", "in a tar"),
      ] {
        let point = try folder.folder(ByteString("mount\(path.count)"))
        try withMount(MountSetup(main: folder / ByteString(path), point: point)) { mount in
          let content = try (mount.point / "file").readText()
          #expect(content == text, "\(path)")
        }
      }
      let refused = try Command([
        try Binary.underTest(), folder / "out.tar.gz!/in.zip!/d", try folder.folder("refused"),
      ]).run()
      #expect(refused.status == 1)
      #expect(refused.errorText.contains("'in.zip' is compressed in the archive"), "\(refused.errorText)")
    }

    @Test("what cannot be a layer is refused with the reason", .timeLimit(.minutes(1)))
    func refused() throws {
      let folder = try TemporaryFolder()
      try write(
        """
        data = random.Random(1).randbytes(100_000)
        whole = io.BytesIO()
        with tarfile.open(fileobj=whole, mode="w") as archive: add(archive, "file", data)
        whole = whole.getvalue()
        end = 512 + 100_352
        packed = gzip.compress(whole)
        flipped = bytearray(packed); flipped[-6] ^= 1
        for name, content in {"cut": whole[:50_000], "endless": whole[:end], "plain.gz": gzip.compress(b"text"),
                              "cut.gz": packed[:-9], "crc.gz": bytes(flipped), "cut.xz": lzma.compress(whole)[:-1],
                              "cut.bz2": bz2.compress(whole)[:-1]}.items():
            open(name, "wb").write(content)
        """, in: folder.path)
      try (folder / "encrypted.7z").write(ForeignContainers.encrypted)
      let point = try folder.folder("mount")
      for (name, reason) in [
        ("cut", "a damaged archive: Truncated"), ("endless", "a part may be missing"),
        ("plain.gz", "neither a tar nor a cpio archive"),
        ("cut.gz", "ends in the middle"), ("crc.gz", "gzip: incorrect data check"),
        ("cut.xz", "a damaged archive"),
        ("cut.bz2", "a damaged archive"), ("encrypted.7z", "encrypted 7z archives cannot be read"),
      ] {
        let outcome = try Command([try Binary.underTest(), folder / ByteString(name), point]).run()
        #expect(outcome.status == 1 && outcome.errorText.contains(reason), "\(name): \(outcome.errorText)")
      }
    }
  }
}

/// Archives that neither Python nor libarchive can write.
private enum ForeignContainers {
  /// Of one file with a password, by 7-Zip.
  static let encrypted: [UInt8] = [
    55, 122, 188, 175, 39, 28, 0, 4, 250, 84, 211, 31, 16, 0, 0, 0, 0, 0, 0, 0, 98, 0, 0, 0, 0, 0, 0, 0,
    104, 40, 46, 148, 101, 251, 20, 12, 168, 229, 124, 206, 212, 201, 204, 26, 155, 249, 28, 67, 1, 4, 6,
    0, 1, 9, 16, 0, 7, 11, 1, 0, 2, 36, 6, 241, 7, 1, 18, 83, 15, 63, 172, 190, 24, 34, 123, 132, 73, 84,
    29, 14, 51, 233, 109, 196, 33, 33, 33, 1, 0, 1, 0, 12, 6, 2, 0, 8, 10, 1, 172, 42, 147, 216, 0, 0, 5,
    1, 25, 1, 0, 17, 7, 0, 104, 0, 105, 0, 0, 0, 25, 4, 0, 0, 0, 0, 20, 10, 1, 0, 185, 76, 187, 123, 134,
    124, 221, 1, 21, 6, 1, 0, 32, 128, 164, 129, 0, 0,
  ]
}
