import Posix

/// The options of fuse-overlayfs(1): `lowerdir=`, `upperdir=` and so on. Programs that run containers give them to the program
/// that mounts an image (`mount_program` of containers-storage.conf(5)).
///
/// A mount with them shows nothing that the layers do not have.
struct OverlayOptions {
  /// The layers that are only read, top first; the last one is MAIN. Empty without the option.
  private(set) var lower: [[UInt8]] = []
  /// The layer that takes the changes; nil for a read-only mount.
  private(set) var upper: [UInt8]?
  /// An option that has a meaning only here; nil without one.
  private(set) var needing: String?
  /// Other options of bundlefs that were given by other names.
  private(set) var translated: [[UInt8]] = []
  /// Whether the program was run as `fuse-overlayfs`.
  var isProgram = false
  /// Whether the mount has what holds with these options.
  var isComplete = false

  var isOn: Bool { isProgram || !lower.isEmpty || upper != nil }

  /// Those that change nothing: what they ask for holds in any case, or they allow what is not made use of.
  private static let flags: Set<String> = [
    "volatile", "static_nlink", "ino32_t", "fsync", "kernel_cache", "splice_read", "splice_write",
    "splice_move",
    // What is mounted in a container is a bind mount, which has its own propagation.
    "private", "rprivate", "shared", "rshared", "slave", "rslave", "unbindable", "runbindable",
  ]
  private static let numbers: Set<String> = [
    "threaded", "fsync", "sync", "fast_ino", "fast_ino_check", "writeback", "max_write",
  ]
  private static let chosen: [String: Set<String>] = [
    "xino": ["off", "auto"], "redirect_dir": ["off", "nofollow"], "metacopy": ["off"], "index": ["off"],
    "nfs_export": ["off"], "xattr_permissions": ["0"],
  ]
  /// Why others are refused, by name.
  private static let refused: [String: String] = [
    "noacl": "the ACLs of the layers always count",
    "plugins": "there are no plugins",
    "context": "the mount gives no security labels",
    "xattr_permissions": "owners and modes are those of the files, not of an extended attribute",
    "xino": "inode numbers can be others at the next mount",
    "redirect_dir": "directories below are renamed by copying them",
    "metacopy": "files are copied up with their content",
    "index": "names of one file below become files of their own when it is changed",
    "nfs_export": "file handles end with the mount",
  ]

  /// Reads an option that bundlefs does not have otherwise.
  /// - Returns: false if it is not one of fuse-overlayfs.
  mutating func read(_ option: MountOption) throws(Failure) -> Bool {
    switch option.name {
    case "lowerdir": lower = try option.lowerDirectories()
    case "upperdir": upper = try option.text(of: "DIR")
    case "timeout" where option.value != nil:
      needing = option.name
      translated.append(Array("cache=".utf8) + (option.value ?? []))
    case "noxattrs" where option.value != nil:
      needing = option.name
      if try option.isNotZero() { translated.append(Array("xattr=off".utf8)) }
    default:
      guard try Self.changesNothing(option) else { return false }
      needing = option.name
    }
    return true
  }

  private static func changesNothing(_ option: MountOption) throws(Failure) -> Bool {
    let (name, value) = (option.name, option.value?.shown)
    if value == nil, flags.contains(name) { return true }
    if let value, numbers.contains(name) {
      if UInt32(value) != nil { return true }
      throw option.invalid(expected: "\(name)=N, a number")
    }
    if let value, chosen[name]?.contains(value) == true { return true }
    guard let reason = refused[name] else { return false }
    throw .usage("the option '\(option.text)' of fuse-overlayfs cannot be had: \(reason); leave it out")
  }

  /// - Throws: if the options do not make up a mount.
  func check(_ options: MountOptions) throws(Failure) {
    if !isOn {
      guard let needing else { return }
      throw .usage("'\(needing)' is an option of fuse-overlayfs, and needs 'lowerdir=DIR[:DIR...]'")
    }
    if options.isRemount { throw .usage("a remount does not change the layers of 'lowerdir'; leave it out") }
    if lower.isEmpty { throw .usage("the layers are missing; add 'lowerdir=DIR[:DIR...]'") }
    for other in ["substitution", "writable"] where options.names.contains(other) {
      throw .usage("'lowerdir' and '\(other)' cannot be combined: 'lowerdir' and 'upperdir' name all layers")
    }
    guard let upper else { return }
    guard let work = options.workDirectory else {
      throw .usage("'upperdir' needs 'workdir=DIR', an empty directory of its file system")
    }
    for (name, path) in [("upperdir", upper), ("workdir", work)] where !options.hasResolvedPaths {
      try Failure.naming("\(name)=\(path.shown)") { () throws(Errno) in
        _ = try Descriptor.open(path, [.pathOnly, .directory])
      }
    }
  }

  /// What a mount has unless other options say otherwise, as fuse-overlayfs mounts.
  /// - Parameter isRoot: whether other users may enter the mount, and set-user-ID programs count.
  func defaults(isRoot: Bool) -> [String] {
    let shared = isRoot ? ["allow_other", "suid"] : []
    let access = upper == nil ? ["ro"] : ["trust_upper"]
    return shared + access + [
      "control=none", "resource_scheme=none", "xattr=layers", "announce=off", "noatime",
      "fsname=fuse-overlayfs",
    ]
  }

  /// Options that one of the defaults would contradict.
  static let opposites = ["suid": "nosuid", "noatime": "atime", "allow_other": "allow_root"]
}

extension MountOption {
  /// `DIR[:DIR…]`, where a backslash makes a colon part of a name.
  fileprivate func lowerDirectories() throws(Failure) -> [[UInt8]] {
    let paths = value.map { Self.split($0, at: UInt8(ascii: ":")) } ?? [[]]
    if paths.contains([]) { throw invalid(expected: "\(name)=DIR[:DIR...]") }
    return paths.map(Self.unescape)
  }

  /// `0` or another number.
  fileprivate func isNotZero() throws(Failure) -> Bool {
    guard let number = value.flatMap({ UInt32($0.shown) }) else {
      throw invalid(expected: "\(name)=0 or \(name)=1")
    }
    return number != 0
  }
}
