import Posix

/// What the kind of a file system says about a layer on it, by `f_type` of statfs(2).
public enum FileSystemType {
  /// Those that can change without inotify(7) events on this machine, with their names.
  static let unwatchable: [Int: String] = remote.merging([
    0x7461_636F: "OCFS2", 0x0116_1970: "GFS2", 0x9FA0: "proc", 0x6265_6572: "sysfs",
  ]) { name, _ in name }

  /// Those whose calls a server or another process answers, perhaps never.
  static let remote: [Int: String] = [
    0x6969: "NFS", 0x517B: "SMB", 0xFF53_4D42: "CIFS", 0xFE53_4D42: "SMB2", 0x0102_1997: "9p",
    0x00C3_6400: "Ceph", 0x6573_5546: "FUSE", 0x5346_414F: "AFS", 0x7375_7245: "Coda", 0x564C: "NCP",
    0x0BD0_0BD0: "Lustre", 0x6A65_6A62: "virtiofs",
  ]

  /// Those that are stacked on another one: overlayfs and eCryptfs.
  static let stacked: Set<Int> = [0x794C_7630, 0xF15F]

  /// Those where names that differ in case are always one: FAT and exFAT.
  static let folding: Set<Int> = [0x4D44, 0x2011_BAB0]

  /// Whether a server or another process answers the calls on a file.
  public static func isRemote(_ type: Int) -> Bool { remote[type] != nil }
}
