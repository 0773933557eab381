import Posix
import TestSupport

/// A mount namespace in which mount(8) has bundlefs's helpers and its own /etc/fstab, without changing the machine.
struct PrivateSystem {
  private let folder: ByteString
  private let fixture: Fixture

  /// - Parameter fixture: provides the mount point for the scripts.
  init(_ fixture: Fixture) throws {
    self.fixture = fixture
    folder = try fixture.folder.folder("system")
    let programs = try fixture.folder.folder("system/sbin")
    // A copy that other users may execute.
    try Command(["cp", try Binary.underTest(), programs / "bundlefs"]).check()
    try (programs / "bundlefs").setMode(0o755)
    for name in ["mount.bundlefs", "mount.fuse.bundlefs"] as [ByteString] {
      try (programs / name).makeLink(to: "bundlefs")
    }
    try (folder / "fstab").write("")
  }

  /// Adds a line to fstab; paths are escaped as fstab(5) requires.
  func add(_ main: ByteString, _ point: ByteString, _ type: String, _ options: String) throws {
    let written = [main, point].map { path in
      path.text.replacing(#"\"#, with: #"\134"#).replacing(" ", with: #"\040"#)
    }
    let table = try (folder / "fstab").readText()
    try (folder / "fstab").write(table + "\(written[0]) \(written[1]) \(type) \(options) 0 0\n")
  }

  /// Runs a bash script with `set -e`. The variables `$main`, `$point` and `$other` are the fixture's MAIN, mount
  /// point and substitution.
  /// - Returns: its standard output and error output.
  @discardableResult
  func run(_ script: String, parameters: [ByteString] = []) throws -> String {
    let whole = #"""
      set -e
      exec 2>&1
      mount -t overlay -o "lowerdir=$1/sbin:/usr/sbin" overlay /usr/sbin
      mount --bind "$1/fstab" /etc/fstab
      main=$2 point=$3 other=$4
      shift 4
      # The type and the ro or rw flag as in the kernel's mount table.
      shown() { findmnt -n -o FSTYPE,VFS-OPTIONS "${1-$point}" | sed 's/ *\(r[ow]\),.*/ \1/'; }

      """#
    let command = Command(
      [
        "unshare", "--mount", "--propagation", "private", "bash", "-c", ByteString(whole + script), "bash",
        folder,
        fixture.main, fixture.point, fixture.substitution,
      ] + parameters)
    // Its deinit ends a mount that the script leaves behind.
    let mount = try DaemonMount(command, point: fixture.point)
    let output = mount.outcome.outputText
    guard mount.outcome.status == 0 else {
      throw TestFailure("exit \(mount.outcome.status): \(output)\(mount.outcome.errorText)")
    }
    guard try mount.isGone() else { throw TestFailure("the script has left a mount: \(output)") }
    return output
  }
}
