import Posix
import TestSupport
import Testing

/// io_uring(7), which polls a file before it reads it.
extension MountTests {
  @Suite struct RingTests {
    /// Reads each file by one IORING_OP_READ, and prints the bytes' number or that none came within five seconds.
    private static let script = #"""
      import ctypes, mmap, os, struct, sys, time
      libc = ctypes.CDLL(None, use_errno=True)
      IN_POINTER = ctypes.c_void_p

      def read(path):
          parameters = ctypes.create_string_buffer(120)
          ring = libc.syscall(425, 4, parameters)
          if ring < 0:
              return "unavailable"
          fields = struct.unpack("<30I", parameters.raw)
          entries, completions = fields[0], fields[1]
          sq_tail, sq_array = fields[10 + 1], fields[10 + 6]
          cq_head, cq_tail, cqes = fields[20], fields[21], fields[25]
          submission = mmap.mmap(ring, sq_array + entries * 4, offset=0)
          completion = mmap.mmap(ring, cqes + completions * 16, offset=0x8000000)
          queue = mmap.mmap(ring, entries * 64, offset=0x10000000)
          file = os.open(path, os.O_RDONLY)
          buffer = ctypes.create_string_buffer(65536)
          queue[0:64] = struct.pack("<BBHiQQIIQ", 22, 0, 0, file, 0, ctypes.addressof(buffer), 65536, 0, 0).ljust(64, b"\0")
          submission[sq_array:sq_array + 4] = struct.pack("<I", 0)
          submission[sq_tail:sq_tail + 4] = struct.pack("<I", 1)
          libc.syscall(426, ring, 1, 0, 0, IN_POINTER(None), 0)
          end = time.monotonic() + 5
          while completion[cq_head:cq_head + 4] == completion[cq_tail:cq_tail + 4]:
              if time.monotonic() > end:
                  return "nothing"
              libc.syscall(426, ring, 0, 0, 1, IN_POINTER(None), 0)
              time.sleep(0.001)
          result = struct.unpack("<i", completion[cqes + 8:cqes + 12])[0]
          return result == os.stat(path).st_size

      print(*[read(path) for path in sys.argv[1:]])
      """#

    @Test("io_uring reads files and the control file", .timeLimit(.minutes(1)))
    func read() throws {
      let fixture = try Fixture()
      try withMount(fixture.setup) { mount in
        try mount.writeControl("route Any s:Text\nx:1\n")
        let outcome = try Command([
          "python3", "-c", ByteString(Self.script), mount.point / "plain.txt", mount.controlFile,
          mount.controlFile,
        ]).run(timeout: 40)
        let expected = ["True True True\n", "unavailable unavailable unavailable\n"]
        #expect(expected.contains(outcome.outputText), "\(outcome.outputText) \(outcome.errorText)")
      }
    }
  }
}
