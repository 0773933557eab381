import Posix
import TestSupport

/// A mount namespace in which mount(8) has our helpers and a table of its own: what the machine has installed and
/// its /etc/fstab stay as they are.
struct PrivateSystem {
  private let folder: ByteString
  private let fixture: Fixture

  /// - Parameter fixture: whose mount point the scripts mount at.
  init(_ fixture: Fixture) throws {
    self.fixture = fixture
    folder = try fixture.folder.folder("system")
    let programs = try fixture.folder.folder("system/sbin")
    // A copy, which other users may run, too.
    try Command(["cp", try Binary.underTest(), programs / "bundlefs"]).check()
    try (programs / "bundlefs").setMode(0o755)
    for name in ["mount.bundlefs", "mount.fuse.bundlefs"] as [ByteString] {
      try (programs / name).makeLink(to: "bundlefs")
    }
    try (folder / "fstab").write("")
  }

  /// A line of the table: `MAIN POINT TYPE OPTIONS`. Names are written as fstab(5) wants them.
  func add(_ main: ByteString, _ point: ByteString, _ type: String, _ options: String) throws {
    let written = [main, point].map { path in
      path.text.replacing(#"\"#, with: #"\134"#).replacing(" ", with: #"\040"#)
    }
    let table = try (folder / "fstab").readText()
    try (folder / "fstab").write(table + "\(written[0]) \(written[1]) \(type) \(options) 0 0\n")
  }

  /// Runs a script of bash, which ends with its first command that fails: `$main`, `$point` and `$other`, the
  /// substitution, are the fixture's.
  /// - Returns: what it printed, errors included.
  @discardableResult
  func run(_ script: String, parameters: [ByteString] = []) throws -> String {
    let whole = #"""
      set -e
      exec 2>&1
      mount -t overlay -o "lowerdir=$1/sbin:/usr/sbin" overlay /usr/sbin
      mount --bind "$1/fstab" /etc/fstab
      main=$2 point=$3 other=$4
      shift 4
      # As the kernel has it: the type, and whether it can be written to.
      shown() { findmnt -n -o FSTYPE,VFS-OPTIONS "${1-$point}" | sed 's/ *\(r[ow]\),.*/ \1/'; }

      """#
    let command = Command(
      [
        "unshare", "--mount", "--propagation", "private", "bash", "-c", ByteString(whole + script), "bash",
        folder,
        fixture.main, fixture.point, fixture.substitution,
      ] + parameters)
    // It has killed what is left there when it goes.
    let mount = try DaemonMount(command, point: fixture.point)
    let said = mount.outcome.outputText
    guard mount.outcome.status == 0 else {
      throw TestFailure("exit \(mount.outcome.status): \(said)\(mount.outcome.errorText)")
    }
    guard try mount.isGone() else { throw TestFailure("the script has left its mount: \(said)") }
    return said
  }
}
