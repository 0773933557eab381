/// The names of the mount options, for messages about misspelt ones.
enum OptionNames {
  /// Those that take no value.
  static let flags: Set<String> = [
    "writable", "passthrough", "trust_upper", "list_routes", "hide_routes", "low_latency", "debug", "remount",
    "nonempty", "squash_to_root",
    "allow_other", "allow_root", "auto_unmount", "default_permissions",
    "ro", "rw", "suid", "nosuid", "dev", "nodev", "exec", "noexec", "atime", "noatime", "sync", "async",
    "dirsync",
    "defaults", "auto", "noauto", "user", "nouser", "users", "owner", "group", "nofail", "_netdev",
    "relatime",
    "norelatime", "strictatime", "nostrictatime", "diratime", "nodiratime", "lazytime", "nolazytime",
    "silent",
    "loud",
  ]

  /// Those that take one.
  static let valued: Set<String> = [
    "writable", "workdir", "lowerdir", "upperdir", "passthrough", "substitution", "cache", "cache_size",
    "archive_encoding", "archive_password_file", "http_cache", "http_cache_size", "http_headers_file",
    "http_refresh",
    "announce", "whiteouts", "rename_copy", "xattr", "routes", "control", "results", "routes_mode",
    "languages", "scale",
    "idiom",
    "resource_scheme", "fsname", "max_read", "layer_timeout", "layer_timeout_action", "case", "strings",
    "hide",
    "owners", "uid", "gid", "umask", "uidmapping", "gidmapping", "squash_to_uid", "squash_to_gid",
    "missing", "mtime", "log", "survive", "watchdog", "profile",
  ]

  /// What is wrong with an option that is not known.
  static func fault(of option: MountOption) -> String {
    if option.value != nil, flags.contains(option.name) {
      return "mount option '\(option.text)': '\(option.name)' takes no value"
    }
    let candidates = flags.union(valued)
    let near = Suggestion.nearest(to: option.name, among: candidates).map {
      valued.contains($0) ? $0 + "=" : $0
    }
    return "unknown mount option '\(option.text)'\(Suggestion.question(near))"
  }
}
