import Glibc
import Posix
import TestSupport
import Testing

/// Layers into which the mount itself was bind-mounted. The daemon runs as an unprivileged user, and cannot exclude such
/// mounts by cloning the layers' mounts.
extension MountTests {
  @Suite struct OwnFileSystemTests {
    @Test("a layer that leads into the mount itself blocks nothing", .timeLimit(.minutes(2)))
    func bindMounts() throws {
      let fixture = try Fixture()
      for name in ["loop", "seen", "new"] as [ByteString] { try (fixture.main / name).makeDirectory() }
      try (fixture.main / "loop-file").write("main's own\n")
      try (fixture.main / "seen/file").write("seen\n")
      try withOpenDevice {
        var setup = try UnprivilegedTests().userSetup(fixture)
        // Nothing is cached, so that every access sends requests.
        setup.options = ["cache=none"]
        setup.lifetime = 60
        try withMount(setup) { mount in
          // Known before the mount appears there.
          try asUser(#"ls -l "$1/seen"; cat "$1/seen/file" "$1/loop-file" >/dev/null"#, mount).check(
            timeout: 20)
          // Not by MNT_FORCE, which would abort the mount's own connection.
          defer { _ = try? Command.shell(#"umount -l "$1"/{loop,loop-file,seen}"#, fixture.main).run() }
          try bindOwn(mount, fixture.main)
          let walk =
            #"ls -laR "$1"; find "$1" -type f -exec cat {} +; stat "$1/seen/file"; ls "$1/loop/folder""#
          for _ in 0..<3 {
            let outcome = try asUser(walk, mount).run(timeout: 20)
            #expect(outcome.outputText.contains("main's plain\n"))
          }
          for name in ["loop", "loop-file", "seen"] {
            let outcome = try asUser(#"stat "$1/"# + name + "\"", mount).run(timeout: 20)
            #expect(outcome.errorText.contains("Too many levels of symbolic links"), "\(outcome.errorText)")
          }
        }
      }
    }

    /// Bind-mounts the mount's root, a file and a directory of it into a layer. Only the mounting user may look into the
    /// mount, so that a process of that user has them open.
    private func bindOwn(_ own: Mount, _ layer: ByteString) throws {
      let holder = try Child(
        asUser(#"cd "$1/folder"; exec <"$1/plain.txt" 3<"$1"; echo ready; exec sleep 60"#, own))
      #expect(eventually(within: 10) { holder.outputText == "ready\n" })
      let process = ByteString("/proc/\(holder.pid)")
      for (source, target) in [("fd/3", "loop"), ("fd/0", "loop-file"), ("cwd", "seen")] {
        let path = (layer / ByteString(target)).bytes + [0]
        try (process / ByteString(source)).call("mount") { source in
          path.withUnsafeBytes {
            mount(source, $0.baseAddress?.assumingMemoryBound(to: CChar.self), nil, UInt(MS_BIND), nil)
          }
        }
      }
      try holder.kill()
    }

    private func asUser(_ script: String, _ mount: Mount) -> Command {
      Command.shell(script, mount.point).asUser(UnprivilegedTests.nobody)
    }
  }
}
