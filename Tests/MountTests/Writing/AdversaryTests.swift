import Glibc
import Posix
import TestSupport
import Testing

/// Users who act on a mount and on layers of their own at random, while the worker dies now and then.
extension MountTests {
  @Suite struct AdversaryTests {
    private static let users: [UInt32] = [1000, 1001, 1002]
    private static let chosen: [UInt32: UInt32] = [1000: 0o1600, 1001: 0o700, 1002: 0o400]
    private static let steps = TestLength.of(full: 17_000, brief: 3000)
    private static let deaths = 5

    @Test("no user gets another's rights", .timeLimit(.minutes(10)), arguments: [1, 2])
    func random(_ seed: Int) throws {
      let fixture = try Fixture(isFilled: false)
      try fixture.folder.path.setMode(0o755)
      let layers = try fixture.folder.folder("layers")
      // Where all may make and remove entries.
      var setup = fixture.setup("allow_other", "writable", "trust_upper")
      for user in Self.users {
        let layer = layers / ByteString("\(user)")
        try layer.makeDirectory()
        try layer.setOwner(user, group: user)
        setup.substitutions.append(layer)
      }
      try fill(fixture.main)
      try fixture.substitution.setMode(0o1777)
      setup.lifetime = 600
      try withMount(setup) { mount in
        let script = ByteString(#filePath).parent / "Model/adversaries.py"
        // Each executed by its user: a fork of this process may keep capabilities (SECBIT_NO_SETUID_FIXUP).
        let children = try Self.users.map { user in
          try Child(
            Command([
              "/usr/bin/python3", script, mount.point, layers, ByteString("\(seed)"),
              ByteString("\(Self.steps)"),
            ]).asUser(user))
        }
        for _ in 0..<Self.deaths where children.contains(where: { $0.status() == nil }) {
          // A worker that is about to succeed has not answered yet.
          try mount.barrier()
          let worker = mount.worker
          if worker != mount.process.pid { kill(worker, SIGKILL) }
        }
        for child in children {
          let outcome = try child.wait(timeout: 500)
          #expect(outcome.status == 0 && outcome.outputText == "", "\(outcome.outputText)")
        }
        let trees =
          [fixture.main, fixture.substitution, mount.point] + Self.users.map { layers / ByteString("\($0)") }
        for tree in trees { try expectOwnersOnly(tree) }
      }
    }

    /// Root's files and folders of the names that the users use.
    private func fill(_ main: ByteString) throws {
      for (folder, mode) in [("", 0o755), ("d0", 0o755), ("d1", 0o700)] as [(ByteString, UInt32)] {
        if folder != "" { try (main / folder).makeDirectory() }
        for number in 0..<6 {
          let permissions: UInt32 = [0o600, 0o644, 0o666][number % 3]
          let file = main / folder / ByteString("n\(number)")
          try file.write("owner=0 mode=\(String(permissions, radix: 8))\n")
          try file.setMode(permissions)
        }
        try (main / folder).setMode(mode)
      }
    }

    /// Expects each file as its first line says, changed by users only that may.
    private func expectOwnersOnly(_ folder: ByteString) throws {
      for name in try folder.names() where !name.description.hasPrefix(".") {
        let path = folder / name
        let status = try path.status()
        if status.kind == .directory {
          try expectOwnersOnly(path)
          continue
        }
        guard status.kind == .regular, status.size > 0 else { continue }
        let lines = try path.readText().split(separator: "\n")
        let words = try #require(lines.first).split(whereSeparator: { " =".contains($0) })
        guard words.count == 4, let owner = UInt32(words[1]), let mode = UInt32(words[3], radix: 8) else {
          continue
        }
        #expect(status.owner == owner, "\(path): \(lines)")
        #expect(
          [mode, 0o600, Self.chosen[owner] ?? mode].contains(status.permissions),
          "\(path): \(String(status.permissions, radix: 8)), \(lines)")
        for line in lines.dropFirst() where line.hasPrefix("by=") {
          #expect(mode & 0o002 != 0 || line == "by=\(owner)", "\(path): \(lines)")
        }
      }
    }
  }
}
