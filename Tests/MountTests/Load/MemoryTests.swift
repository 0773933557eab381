import FoundationEssentials
import Posix
import TestSupport
import Testing

/// The daemon releases nodes that the kernel forgets.
extension MountTests.ExclusiveTests {
  @Suite struct MemoryTests {
    @Test(
      "nodes, descriptors and memory are released when the kernel drops its caches", .timeLimit(.minutes(15)))
    func released() throws {
      let fixture = try Fixture(isFilled: false)
      // 20,000 files, half of them in each layer.
      try fixture.fill(folders: (0..<40).map { ByteString("folder-\($0)") }, files: 250)
      var setup = fixture.setup
      setup.lifetime = 900
      try withMount(setup) { mount in
        let daemon = DaemonProcess(mount)
        // A daemon that answers has opened what it always has open.
        _ = try daemon.status()
        let descriptors = try daemon.descriptors()
        for _ in 0..<3 { try walk(mount.point, count: 20_000) }
        #expect(try daemon.status().nodes > 0)
        try expectReleased(daemon, descriptors: descriptors)
        let memory = try daemon.memory()
        for _ in 0..<10 {
          try walk(mount.point, count: 20_000)
          try expectReleased(daemon, descriptors: descriptors)
        }
        // The allocator may keep some memory; 200,000 leaks of 16 bytes would exceed the limit.
        let growth = try daemon.memory() - memory
        #expect(growth < 3 << 20, "grown by \(growth) bytes")
      }
    }

    /// Lists and reads all files.
    private func walk(_ point: ByteString, count: Int) throws {
      let walked = try Command.shell(
        #"set -o pipefail; cd "$1" && find . -type f -print0 | xargs -0 -n 500 cat | wc -l"#,
        point
      ).check(timeout: 120)
      #expect(walked.outputText == "\(count)\n")
    }

    private func expectReleased(_ daemon: DaemonProcess, descriptors: Int) throws {
      var nodes = 0
      var open = 0
      let isReleased = try eventually(within: 20) {
        try Command.shell("echo 2 > /proc/sys/vm/drop_caches").check()
        nodes = try daemon.status().nodes
        open = try daemon.descriptors()
        return nodes <= 16 && open <= descriptors + 8
      }
      #expect(isReleased, "\(nodes) nodes, \(open) descriptors, \(descriptors) initially")
    }
  }
}

/// The resource usage of a mount's daemon.
struct DaemonProcess {
  /// The daemon's own counters.
  struct Status: Decodable {
    var nodes: Int
    var descriptors: Int
  }

  private let mount: Mount
  private var process: ByteString { ByteString("/proc/\(mount.worker)") }

  init(_ mount: Mount) { self.mount = mount }

  func status() throws -> Status {
    if Mount.hasControl {
      let report = try mount.report()
      return Status(nodes: report.nodes, descriptors: report.descriptors)
    }
    let text = try mount.point.attribute("user.bundlefs.status")
    return try JSONDecoder().decode(Status.self, from: Data(text))
  }

  /// The number of open descriptors, from /proc.
  func descriptors() throws -> Int { try (process / "fd").list().count }

  /// Anonymous resident memory in bytes.
  func memory() throws -> Int {
    let lines = try (process / "status").readText().split(separator: "\n")
    guard let line = lines.first(where: { $0.hasPrefix("RssAnon:") }),
      let size = line.split(whereSeparator: { !$0.isNumber }).first.flatMap({ Int($0) })
    else { throw TestFailure("no RssAnon in \(process)/status") }
    return size * 1024
  }
}
