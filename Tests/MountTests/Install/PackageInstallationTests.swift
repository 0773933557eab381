import TestSupport
import Testing

/// How the scripts install Debian packages.
extension MountTests {
  @Suite struct PackageInstallationTests {
    @Test("another apt that is running is waited for", .timeLimit(.minutes(1)))
    func locked() throws {
      let folder = try TemporaryFolder()
      // Updating fails twice, as apt-get does without waiting while another one has the lists locked.
      let apt = #"""
        #!/bin/bash
        echo "$*" >> "$0.log"
        [[ $* == *update* && $(wc -l < "$0.log") -lt 3 ]] || exit 0
        echo 'E: Could not get lock /var/lib/apt/lists/lock. It is held by process 1 (apt-get)' >&2
        exit 100
        """#
      try (folder / "apt-get").write(apt)
      try (folder / "apt-get").setMode(0o755)
      let common = ByteString(#filePath).parent.parent.parent.parent / "scripts/lib/common.sh"
      let script = #"""
        set -euo pipefail
        unset BUNDLEFS_SKIP_PACKAGES
        source "$1"
        PATH=$2:$PATH
        as_root() { "$@"; }
        sleep() { :; }
        missing_packages() { echo some-package; }
        apt_is_locked() { true; }
        install_packages some-package
        cat "$2/apt-get.log"
        """#
      let output = try Command.shell(script, common, folder.path).check(timeout: 20).outputText
      #expect(output.contains("Waiting for another apt"))
      let wait = "-o DPkg::Lock::Timeout=600"
      let calls = output.split(separator: "\n").filter { $0.hasPrefix(wait) }
      #expect(
        calls.count == 4
          && calls.last?.hasSuffix("install -qq -y --no-install-recommends some-package") == true)
      #expect(calls.prefix(3).allSatisfy { $0 == "\(wait) update -qq" }, "\(output)")
    }
  }
}
