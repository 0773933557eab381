import TestSupport
import Testing

@testable import bundlefs

@Suite struct MemoryLimitTests {
  @Test("reads the limits of a control group and its ancestors in both versions")
  func files() {
    let files = { (line: String) in MemoryLimit.files(ofGroup: Array(line.utf8)) }
    #expect(
      files("0::/user.slice/app") == [
        "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/user.slice/memory.max",
        "/sys/fs/cgroup/user.slice/app/memory.max",
      ])
    #expect(
      files("9:memory:/x:y") == [
        "/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/x:y/memory.limit_in_bytes",
      ])
    #expect(files("4:cpu,memory:/").count == 1)
    #expect(files("4:cpu,cpuacct:/a").isEmpty && files("1:name=systemd:/").isEmpty && files("").isEmpty)
  }

  @Test("takes the lowest limit and ignores missing files and `max`")
  func lowest() throws {
    let folder = try TemporaryFolder()
    let files = try ["max\n", "9000\n", "8000\n", ""].enumerated().map { index, text in
      try (folder / ByteString("\(index)")).write(text)
      return (folder / ByteString("\(index)")).text
    }
    #expect(MemoryLimit.lowest(in: files + ["/nonexistent"]) == 8000)
    #expect(MemoryLimit.lowest(in: [files[0]]) == nil)
  }

  @Test("a cache takes at most a quarter of the memory")
  func share() { #expect((0...1 << 20).contains(MemoryLimit.share(atMost: 1 << 20))) }
}
