import Glibc
import Testing

@testable import bundlefs

@Suite struct RemountTests {
  private func flags(_ before: UInt, _ options: String...) -> UInt {
    var flags = MountFlags(of: before)
    for option in options { flags.apply(option) }
    return flags.bits
  }

  @Test("options set and clear their flags; only nosuid and nodev are kept without one")
  func flags() {
    let (readOnly, noSetUser, noDevices) = (UInt(MS_RDONLY), UInt(MS_NOSUID), UInt(MS_NODEV))
    #expect(flags(noSetUser | noDevices, "ro") == readOnly | noSetUser | noDevices)
    #expect(flags(readOnly | noSetUser | UInt(MS_NOEXEC), "rw") == noSetUser)
    #expect(flags(noSetUser, "suid", "dev", "noexec") == UInt(MS_NOEXEC))
    #expect(flags(0, "ro", "rw", "user=me", "allow_other") == 0)
  }

  @Test("the last access time policy wins; without one the kernel keeps its own")
  func times() {
    #expect(flags(UInt(MS_NOATIME)) == 0)
    #expect(flags(0, "relatime", "noatime") == UInt(MS_NOATIME))
    #expect(flags(0, "noatime", "strictatime") == UInt(MS_STRICTATIME))
    #expect(flags(UInt(MS_NOATIME), "atime") == UInt(MS_RELATIME))
  }

  @Test("parses mount(8)'s remount option and its flags -s and -N")
  func arguments() throws {
    func parse(_ words: String...) throws -> MountArguments {
      try MountArguments(words.map { Array($0.utf8) })
    }
    let remount = try parse("mount.bundlefs", "a", "b", "-o", "ro,remount,noexec,substitution=c")
    #expect(remount.options.isRemount && remount.options.flags == ["ro", "noexec"])
    let sloppy = try parse("mount.bundlefs", "a", "b", "-s", "-o", "frobnicate,ro", "-N", "/proc/1/fd/4")
    #expect(sloppy.options.passed.map(\.shown) == ["ro"])
    #expect(sloppy.namespace?.shown == "/proc/1/fd/4")
    #expect(try parse("mount.bundlefs", "a", "b", "-tfuse.bundlefs", "-N7").namespace?.shown == "7")
    #expect(throws: Failure.self) { try parse("bundlefs", "a", "b", "-N", "7") }
    #expect(throws: Failure.self) { try parse("mount.bundlefs", "a", "b", "-o", "frobnicate") }
  }
}
