import Glibc
import TestSupport
import Testing

@testable import bundlefs

/// Which substitutions a remount asks for.
@Suite struct RemountedLayersTests {
  private func lists(_ options: String) throws -> [[[UInt8]]] {
    var read = MountOptions()
    try read.read(Array("remount,\(options)".utf8))
    return read.substitutionLists
  }

  @Test("those of the command line replace those of the fstab line, which count alone")
  func merged() throws {
    func left(_ options: String, _ line: String) throws -> [String] {
      RemountedLayers.withoutMerged(try lists(options), try lists(line)).joined().map(\.shown)
    }
    #expect(try left("substitution=a:b,substitution=c", "substitution=a:b") == ["c"])
    #expect(try left("substitution=a:b", "substitution=a:b") == ["a", "b"])
    #expect(try left("substitution=a,substitution=b", "substitution=a,substitution=b") == ["a", "b"])
    #expect(try left("substitution=a,substitution=b,substitution=", "substitution=a,substitution=b") == [])
    #expect(try left("substitution=a,substitution=c,substitution=d", "substitution=a") == ["c", "d"])
    #expect(try left("substitution=c,substitution=d", "ro") == ["c", "d"])
    #expect(try left("substitution=c", "substitution=a") == ["c"])
  }

  @Test("an empty list of substitutions is one, in a remount and in a mount")
  func empty() throws {
    #expect(try lists("substitution=") == [[]])
    #expect(throws: Failure.self) { try lists("substitution=a::b") }
    #expect(throws: Failure.self) { try lists("substitution") }
    var mount = MountOptions()
    try mount.read(Array("substitution=".utf8))
    #expect(mount.substitutionLists == [[]])
  }

  @Test("what the kernel adds to the mount table is for remounts only")
  func kernelOptions() throws {
    let list = "rw,relatime,user_id=0,group_id=0,rootmode=40000,blksize=4096,default_permissions,allow_other"
    var remount = MountOptions()
    try remount.read(Array("\(list),remount".utf8))
    #expect(remount.isRemount && remount.flags == ["rw", "relatime"])
    var mount = MountOptions()
    #expect(throws: Failure.self) { try mount.read(Array(list.utf8)) }
  }

  @Test("reads the lines of fstab about bundles")
  func table() throws {
    let folder = try TemporaryFolder()
    let file = folder / "fstab"
    try file.write(
      #"""
      # /a /b bundlefs substitution=x 0 0
      /dev/sda1 / ext4 errors=remount-ro 0 1
      /my\040app	/mnt/of\040mine  bundlefs  noauto,x-foreign,substitution=/o\134,n\040e:/two 0 0
      /app /mnt fuse.bundlefs ro
      /app /broken bundlefs substitution=::

      """#)
    let entries = FileSystemTableEntry.all(in: file.bytes)
    #expect(entries.map(\.mountPoint.shown) == ["/mnt/of mine", "/mnt", "/broken"])
    #expect(entries.map { $0.substitutionLists.map { $0.map(\.shown) } } == [[["/o,n e", "/two"]], [], []])
    #expect(FileSystemTableEntry.all(in: (folder / "none").bytes).isEmpty)
  }

  @Test("a failed remount restores the flags, but not statvfs's bits that mean other flags of mount(2)")
  func restoring() {
    let flags = UInt(MS_RDONLY) | UInt(MS_NOEXEC) | UInt(MS_NOATIME)
    // ST_VALID and ST_RELATIME; the latter has the value of MS_BIND.
    #expect(MountFlags(restoring: flags | 0x20 | UInt(MS_BIND)).bits == flags)
    var changed = MountFlags(restoring: flags)
    #expect(changed.isReadOnly)
    changed.isReadOnly = false
    #expect(changed.bits == flags & ~UInt(MS_RDONLY))
  }
}
