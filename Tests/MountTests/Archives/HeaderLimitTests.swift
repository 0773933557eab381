import TestSupport
import Testing

/// Archives whose headers claim names and tables of gigabytes.
extension MountTests {
  @Suite struct HeaderLimitTests {
    private static let script = """
      import gzip, io, resource, struct, subprocess, sys, tarfile, zlib

      def newc(size, name):
          return b"070701" + b"".join(b"%08x" % n for n in [1, 0o100644, 0, 0, 1, 0, size, 0, 0, 0, 0, name, 0])

      def zeros(path, head, size):
          with open(path, "wb") as file:
              file.write(head)
              file.truncate(size)

      def packed(path, head, block, count):
          with open(path, "wb") as file:
              file.write(gzip.compress(head, 1))
              member = gzip.compress(block, 1)
              for _ in range(count):
                  file.write(member)

      def rar():
          def block(kind, flags, fields):
              head = struct.pack("<BHH", kind, flags, 7 + len(fields)) + fields
              return struct.pack("<H", zlib.crc32(head) & 0xFFFF) + head
          size = 0x7FFFFFFF
          fields = struct.pack("<LLBLLBBHL", size, size, 3, 0, 0x51214800, 20, 0x30, 4, 0o120777) + b"link"
          return b"Rar!\\x1a\\x07\\x00" + block(0x73, 0, bytes(6)) + block(0x74, 0x8000, fields)

      def sparse():
          info = tarfile.TarInfo("GNUSparseFile.0/file")
          info.size = 1 << 40
          names = {"major": "1", "minor": "0", "name": "file", "realsize": "1"}
          info.pax_headers = {"GNU.sparse." + name: value for name, value in names.items()}
          return info.tobuf(tarfile.PAX_FORMAT) + b"999999999\\n"

      kind, path = sys.argv[1:3]
      if kind == "newc":
          zeros(path, newc(0, 0xFFFFFFFF), 5 << 30)
      elif kind == "cpio.gz":
          packed(path, newc(0, 0xFFFFFFFF), bytes(1 << 24), 64)
      elif kind == "second.cpio.gz":
          packed(path, newc(0, 2) + b"a\\0" + newc(0, 0xFFFFFFFF), bytes(1 << 24), 64)
      elif kind == "ar":
          zeros(path, b"!<arch>\\n" + b"//".ljust(48) + b"1000000000`\\n".rjust(12), 1 << 30)
      elif kind == "rar":
          zeros(path, rar(), 3 << 30)
      elif kind == "sparse.tar.gz":
          packed(path, sparse(), b"0\\n0\\n" * (1 << 22), 6)
      outcome = subprocess.run(sys.argv[3:], stderr=subprocess.PIPE)
      print(outcome.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10, outcome.stderr.decode())
      """

    @Test(
      "a header that claims a huge name or table takes little memory", .timeLimit(.minutes(2)),
      arguments: ["newc", "cpio.gz", "second.cpio.gz", "ar", "rar", "sparse.tar.gz"])
    func memory(kind: String) throws {
      let folder = try TemporaryFolder()
      let command = [try Binary.underTest(), "-f", folder / "archive", try folder.folder("mount")]
      let arguments = [ByteString(kind), folder / "archive"] + command
      let output = try Command(["python3", "-c", ByteString(Self.script)] + arguments).check().outputText
      let words = output.split(separator: " ", maxSplits: 2)
      #expect(words.first.flatMap { Int($0) } ?? 0 != 0, "\(kind): \(output)")
      #expect(words.dropFirst().first.flatMap { Int($0) } ?? .max < 600, "MiB of \(kind): \(output)")
      #expect(output.contains("header is longer"), "\(kind): \(output)")
    }
  }
}
