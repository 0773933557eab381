import FoundationEssentials
import Posix
import TestSupport
import Testing

/// What the kernel forgets, the daemon lets go.
extension MountTests {
  @Suite struct MemoryTests {
    @Test("nodes, descriptors and memory fall back when the caches are dropped", .timeLimit(.minutes(15)))
    func fallingBack() throws {
      let fixture = try Fixture(isFilled: false)
      // 20,000 files, half of them in each layer.
      try fixture.fill(folders: (0..<40).map { ByteString("folder-\($0)") }, files: 250)
      var setup = fixture.setup
      setup.lifetime = 900
      try withMount(setup) { mount in
        let daemon = Daemon(mount)
        let descriptors = try daemon.descriptors()
        for _ in 0..<3 { try walk(mount.point, count: 20_000) }
        #expect(try daemon.status().nodes > 0)
        try expectFallenBack(daemon, descriptors: descriptors)
        let memory = try daemon.memory()
        for _ in 0..<10 {
          try walk(mount.point, count: 20_000)
          try expectFallenBack(daemon, descriptors: descriptors)
        }
        // The allocator may keep a little more; 200,000 leaks of even 16 bytes would be more.
        let growth = try daemon.memory() - memory
        #expect(growth < 3 << 20, "grown by \(growth) bytes")
      }
    }

    /// Lists and reads everything.
    private func walk(_ point: ByteString, count: Int) throws {
      let walked = try Command.shell(
        #"set -o pipefail; cd "$1" && find . -type f ! -name .routes -print0 | xargs -0 -n 500 cat | wc -l"#,
        point
      ).check(timeout: 120)
      #expect(walked.outputText == "\(count)\n")
    }

    private func expectFallenBack(_ daemon: Daemon, descriptors: Int) throws {
      var nodes = 0
      var open = 0
      let isFallen = try eventually(within: 20) {
        try Command.shell("echo 2 > /proc/sys/vm/drop_caches").check()
        nodes = try daemon.status().nodes
        open = try daemon.descriptors()
        return nodes <= 16 && open <= descriptors + 8
      }
      #expect(isFallen, "\(nodes) nodes, \(open) descriptors, \(descriptors) at the beginning")
    }
  }
}

/// What can be known of a mount's daemon.
struct Daemon {
  /// What the daemon tells of itself.
  struct Status: Decodable {
    var nodes: Int
    var descriptors: Int
  }

  private let mount: Mount
  private var process: ByteString { ByteString("/proc/\(mount.process.pid)") }

  init(_ mount: Mount) { self.mount = mount }

  func status() throws -> Status {
    if Mount.hasControl {
      let report = try mount.report()
      return Status(nodes: report.nodes, descriptors: report.descriptors)
    }
    let text = try mount.point.attribute("user.bundlefs.status")
    return try JSONDecoder().decode(Status.self, from: Data(text))
  }

  /// Open descriptors, by the kernel's count.
  func descriptors() throws -> Int { try (process / "fd").list().count }

  /// Resident memory that is the process's own, in bytes.
  func memory() throws -> Int {
    let lines = try (process / "status").readText().split(separator: "\n")
    guard let line = lines.first(where: { $0.hasPrefix("RssAnon:") }),
      let size = line.split(whereSeparator: { !$0.isNumber }).first.flatMap({ Int($0) })
    else { throw TestFailure("no RssAnon in \(process)/status") }
    return size * 1024
  }
}
