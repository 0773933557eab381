import Glibc
import Posix
import TestSupport
import Testing

/// Podman with images and containers on the program under test, which it takes for fuse-overlayfs (`mount_program`).
extension MountTests {
  @Suite(.enabled(if: Podman.canRun)) struct PodmanTests {
    @Test("run, diff, commit and cp show what a container has changed", .timeLimit(.minutes(2)))
    func container() throws {
      let podman = try Podman()
      defer { podman.removeAll() }
      let seen = try podman(
        "run", "--rm", "base", "/bin/sh", "-c",
        "rm /dir/a; echo b > /dir/b; ls /dir; ls /rsrc: /.routes || id -u")
      #expect(seen == "b\n0\n")
      try podman(
        "run", "--name", "one", "base", "/bin/sh", "-c",
        "rm /dir/a; echo new > /dir/new; rm -r /old; mkdir /old; touch /old/z; chown 5:6 /old/z; mv /low /high"
      )
      let changes = Set(try podman("diff", "one").split(separator: "\n").map { String($0) })
      #expect(
        changes.isSuperset(of: [
          "C /dir", "D /dir/a", "A /dir/new", "C /old", "A /old/z", "D /old/y", "D /low", "A /high",
          "A /high/x",
        ]), "\(changes)")
      #expect(!changes.contains { $0.contains(".wh.") }, "\(changes)")
      try podman("commit", "-q", "one", "two")
      let listed = try podman(
        "run", "--rm", "two", "/bin/sh", "-c", "ls /dir /old /high /low; stat -c %u:%g /old/z")
      #expect(listed == "/dir:\nnew\n\n/high:\nx\n\n/old:\nz\n5:6\n")
      try podman("cp", podman.folder.path.text + "/Containerfile", "one:/dir/new")
      try podman("rm", "one")
    }

    @Test("build makes layers from layers", .timeLimit(.minutes(2)))
    func build() throws {
      let podman = try Podman()
      defer { podman.removeAll() }
      try podman("build", "-q", "-t", "built", podman.folder.path.text)
      let listed = try podman(
        "run", "--rm", "built", "/bin/sh", "-c", "ls /dir; ls /moved; cat /moved/q; id -u")
      #expect(listed == "Containerfile\nq\nq\n1000\n")
    }

    @Test("a container runs while others start and end", .timeLimit(.minutes(2)))
    func several() throws {
      let podman = try Podman()
      defer { podman.removeAll() }
      try podman("run", "-d", "--name", "long", "base", "/bin/sleep", "1000")
      for number in 0..<4 {
        try podman("exec", "long", "/bin/sh", "-c", "echo \(number) >> /dir/log")
        #expect(try podman("run", "--rm", "base", "/bin/ls", "/dir") == "a\n")
      }
      #expect(try podman("exec", "long", "/bin/cat", "/dir/log") == "0\n1\n2\n3\n")
      try podman("rm", "-f", "-t", "0", "long")
      let mounts = try ByteString("/proc/self/mountinfo").readText()
      #expect(!mounts.contains(podman.folder.path.text + "/graph/overlay/"))
    }
  }
}
