import Posix
import TestSupport

/// Podman with a store of its own, and an image `base` with busybox.
struct Podman {
  let folder: TemporaryFolder
  private let environment: [String: String]

  /// Whether this machine can run a container, for which another driver than overlay is tried.
  static let canRun: Bool = {
    let programs = ["/usr/bin/podman", "/usr/sbin/runc", busybox].allSatisfy { ByteString($0).exists }
    guard programs, let podman = try? Podman(driver: "vfs") else { return false }
    defer { podman.removeAll() }
    return (try? podman("run", "--rm", "base", "/bin/sh", "-c", "echo works")) == "works\n"
  }()

  private static let busybox = "/bin/busybox"

  init(driver: String = "overlay") throws {
    folder = try TemporaryFolder()
    let path = folder.path
    let program = try Binary.underTest()
    try (path / "fuse-overlayfs").makeLink(to: program)
    var storage =
      "[storage]\ndriver = \"\(driver)\"\ngraphroot = \"\(path)/graph\"\nrunroot = \"\(path)/run\"\n"
    if driver == "overlay" {
      storage += "[storage.options.overlay]\nmount_program = \"\(path)/fuse-overlayfs\"\n"
    }
    try (path / "storage.conf").write(storage)
    try (path / "containers.conf").write(
      """
      [containers]
      default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
      netns = "none"
      log_driver = "k8s-file"
      [engine]
      runtime = "runc"
      cgroup_manager = "cgroupfs"
      events_logger = "none"

      """)
    try (path / "Containerfile").write(
      """
      FROM base
      RUN rm -r /dir && mkdir /dir && echo q > /dir/q
      COPY Containerfile /dir/
      RUN mv /dir /moved && mkdir /dir
      USER 1000

      """)
    environment = [
      "CONTAINERS_STORAGE_CONF": "\(path)/storage.conf", "CONTAINERS_CONF": "\(path)/containers.conf",
      "TMPDIR": path.text,
    ]
    try Command.shell(
      """
      set -e; mkdir -p "$1/root/"{bin,dir,old,low,etc,tmp,proc,sys,dev}; cd "$1/root"
      cp /bin/busybox bin/busybox
      for name in sh ls cat rm mkdir mv id sleep touch chown stat; do ln -s busybox bin/$name; done
      echo a > dir/a; echo x > low/x; echo y > old/y; echo root:x:0:0::/:/bin/sh > etc/passwd
      tar -cf ../base.tar .
      """, path
    ).check()
    try self("import", "-q", "\(path)/base.tar", "base")
  }

  /// Runs a command of podman.
  /// - Returns: its standard output.
  /// - Throws: if it fails.
  @discardableResult
  func callAsFunction(_ words: String...) throws -> String {
    try Command((["podman"] + words).map { ByteString($0) }, environment: environment)
      .check(timeout: 60).outputText
  }

  func removeAll() {
    _ = try? self("rm", "-f", "-a", "-t", "0")
    // podman mounts the folder on itself.
    _ = try? Command.shell(
      "for i in 1 2 3; do umount -l \"$1\"/graph/overlay/*/merged \"$1/graph/overlay\" \"$1/graph/vfs\"; done",
      folder.path
    ).run()
  }
}
