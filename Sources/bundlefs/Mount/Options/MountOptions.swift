import Bundles
import Layers
import Routing
import Volume

struct MountOptions {
  /// The values of the options `substitution=`, each top first; an empty one leaves MAIN alone.
  private(set) var substitutionLists: [[[UInt8]]] = []
  /// The substitutions, top first, as `LaidPath.name`.
  var substitutions: [[UInt8]] { Array(substitutionLists.joined()) }
  /// The layer that takes changes.
  var writable = WritableOption.off
  /// The directory in which that layer's work folder is made; nil for the layer itself.
  var workDirectory: [UInt8]?
  /// The options of fuse-overlayfs.
  var overlay = OverlayOptions()
  /// Whether users who may write to that layer are trusted as the mounting user.
  var trustsUpper = false
  var extendedAttributes = ExtendedAttributeMode.on
  /// How that layer hides what is below it.
  var whiteouts = WhiteoutFormat.auto
  /// The most bytes that are copied to rename a directory of layers below; 0 if none is renamed.
  var renameCopy = 256 << 20
  var announces = true
  var cache = CacheMode.coherent
  var fsname: [UInt8]?
  var control = ControlOptions()
  var routes: [[UInt8]] = []
  var resources = ResourceSettings()
  var isDebug = false
  /// In bytes; nil for the default.
  var cacheSize: Int?
  var archivePasswordFile: [UInt8]?
  /// The folder with what was read from servers; nil for the user's.
  var httpCache: [UInt8]?
  /// The file with headers for servers.
  var httpHeadersFile: [UInt8]?
  /// In bytes.
  var httpCacheSize = 1 << 30
  /// In milliseconds.
  var httpRefresh: CInt = 60_000
  var archiveEncoding: NameEncoding?
  var isRemount = false
  /// Whether the paths are those that a predecessor has resolved. They may lead into the mount, which nothing serves until this
  /// process does.
  var hasResolvedPaths = false
  var flags: [String] = []
  /// The names of all options that were given.
  private(set) var names: [String] = []
  /// The options as they were given, with their backslashes: a list for each `-o`.
  private var lists: [[[UInt8]]] = []
  /// Names a path that a comma or colon has torn, if there is one.
  var separatorHint: String? {
    lists.lazy.compactMap { UnescapedSeparator().hint(inOptions: $0) }.first
  }
  /// The options that hold after an upgrade, too, with their backslashes.
  private(set) var lasting: [[UInt8]] = []
  /// Whether unknown options are ignored: mount(8) passes `-s` to its helpers.
  var isSloppy = false
  /// In bytes; nil for the kernel's maximum.
  var maxRead: UInt32?
  /// The minimum size in bytes of files that the kernel reads without the daemon (FUSE passthrough); nil for none.
  var passthrough: UInt64?
  var lowLatency = false
  /// In milliseconds; nil for the default.
  var layerTimeout: CInt?
  var skipsOverdueLayers = false
  /// Whether names are compared without case.
  var foldsNames = false
  /// The patterns of names that the view hides.
  private(set) var hiddenPatterns: [[UInt8]] = []
  /// Whether tables of strings are merged key by key.
  var mergesTables = false
  /// Which owners and permissions are shown.
  var owners = OwnerOptions()
  /// Where the daemon's messages go.
  var log = LogOption.auto
  /// Which modification times are shown.
  var mtime = MTimeOption.file
  /// Whether the mount outlives the death of the process that answers its requests.
  var survives = true
  /// After how many milliseconds a worker that hangs is replaced; nil for never.
  var watchdog: CInt? = 30_000
  /// Whether an empty MAIN may cover a MOUNTPOINT that is not.
  private(set) var coversFiles = false
  /// Whether substitutions may come later.
  var allowsMissing = false
  var passed: [[UInt8]] = []

  /// The size of one READ request: passthrough saves no request for smaller files.
  private static let defaultPassthrough = 128 << 10

  private static let passedNames: Set<String> = [
    "allow_other", "allow_root", "auto_unmount", "default_permissions",
    "ro", "suid", "nosuid", "dev", "nodev", "exec", "noexec", "atime", "noatime", "sync", "async", "dirsync",
  ]
  /// Options of mount(8) and fstab(5) that mean nothing to a file system; `rw` is the default.
  private static let ignoredNames: Set<String> = [
    "rw", "defaults", "auto", "noauto", "user", "nouser", "users", "owner", "group", "nofail", "_netdev",
    "relatime", "norelatime", "strictatime", "nostrictatime", "diratime", "nodiratime", "lazytime",
    "nolazytime", "silent", "loud", "subtype=bundlefs",
  ]
  private static let ignoredPrefixes = ["x-", "X-", "user=", "comment=", "uhelper=", "helper="]
  /// What mount(8) finds in the kernel's mount table and passes on in a remount.
  private static let kernelPrefixes = ["user_id=", "group_id=", "rootmode=", "blksize=", "fd=", "seclabel"]

  /// Reads a comma-separated list of options. A backslash escapes the next byte.
  mutating func read(_ list: [UInt8]) throws(Failure) {
    let list = MountOption.split(list, at: UInt8(ascii: ","))
    lists.append(list)
    if list.contains(Array("remount".utf8)) { isRemount = true }
    for option in list where !option.isEmpty {
      let parsed = MountOption(option)
      if parsed.name == "profile" {
        // Its options stand where it is given.
        for option in try parsed.profile().options { try read(option) }
        continue
      }
      if try overlay.read(parsed) { continue }
      try read(parsed)
      // Files may be others after an upgrade.
      if !Self.passingNames.contains(parsed.name) { lasting.append(option) }
    }
  }

  /// The options that name files, or concern the mount(2) alone.
  private static let passingNames: Set<String> = [
    "substitution", "writable", "workdir", "routes", "archive_password_file", "http_cache",
    "http_headers_file",
    "nonempty",
  ]

  private mutating func read(_ option: MountOption) throws(Failure) {
    let hasValue = option.value != nil
    names.append(option.name)
    switch option.name {
    case "case": foldsNames = try option.isInsensitive()
    case "strings": mergesTables = try option.isMerged()
    case "hide": hiddenPatterns += try option.patterns()
    case "mtime": mtime = try option.mtime()
    case "owners": owners.areOfArchives = try option.areOwnersOfArchives()
    case "uid", "squash_to_uid": owners.setUsers(try option.id(), by: option.name)
    case "gid", "squash_to_gid": owners.setGroups(try option.id(), by: option.name)
    case "uidmapping": owners.setUsers(try option.ranges(), by: option.name)
    case "gidmapping": owners.setGroups(try option.ranges(), by: option.name)
    case "squash_to_root" where !hasValue:
      owners.setUsers(.constant(0), by: option.name)
      owners.setGroups(.constant(0), by: option.name)
    case "umask": owners.umask = try option.mode()
    case "log": log = try option.log()
    case "missing": allowsMissing = try option.isEmptyWhenMissing()
    case "substitution":
      // MAIN alone, which is of use in a remount.
      substitutionLists.append(option.value == [] ? [] : try option.directories())
    case "writable": writable = hasValue ? .directory(try option.upper()) : .firstSubstitution
    case "workdir": workDirectory = try option.text(of: "DIR")
    case "trust_upper" where !hasValue: trustsUpper = true
    case "xattr": extendedAttributes = try option.extendedAttributeMode()
    case "whiteouts": whiteouts = try option.whiteoutFormat()
    case "rename_copy": renameCopy = try option.byteCount(example: "1G")
    case "announce": announces = try option.isOn()
    case "cache": cache = try option.cacheMode()
    case "cache_size": cacheSize = try option.byteCount(example: "512M")
    case "archive_password_file": archivePasswordFile = try option.text(of: "FILE")
    case "archive_encoding": archiveEncoding = try option.encoding()
    case "http_cache": httpCache = try option.text(of: "DIR")
    case "http_cache_size": httpCacheSize = try option.byteCount(example: "4G")
    case "http_headers_file": httpHeadersFile = try option.text(of: "FILE")
    case "http_refresh": httpRefresh = try option.seconds()
    case "passthrough":
      passthrough = UInt64(hasValue ? try option.byteCount(example: "1M") : Self.defaultPassthrough)
    case "routes": routes.append(try option.text(of: "FILE"))
    case "control": control.name = option.isNone ? [] : try option.fileName()
    case "results": control.maxResults = try option.count(in: 1...100_000)
    case "routes_mode": control.mode = try option.mode()
    case "list_routes" where !hasValue: control.isListed = true
    // It is hidden anyway; the option is from before.
    case "hide_routes" where !hasValue: break
    case "languages": resources.lookup.languages = try option.languages()
    case "scale": resources.lookup.scale = try option.scale()
    case "idiom": resources.lookup.idiom = try option.idiom()
    case "resource_scheme": resources.scheme = option.isNone ? "" : try option.scheme()
    case "fsname": fsname = try option.text(of: "NAME")
    case "max_read": maxRead = try option.readSize()
    case "survive": survives = try option.isOn()
    case "watchdog": watchdog = try option.watchdog()
    case "low_latency" where !hasValue: lowLatency = true
    case "layer_timeout": layerTimeout = try option.seconds()
    case "layer_timeout_action": skipsOverdueLayers = try option.timeoutAction()
    case "debug" where !hasValue: isDebug = true
    case "remount" where !hasValue: break
    case "nonempty" where !hasValue: coversFiles = true
    default: try pass(option)
    }
  }

  var announceMode: AnnounceMode {
    if !announces { return .off }
    if passed.contains(Array("ro".utf8)) { return .unavailable("the mount is read-only (ro)") }
    if cache != .coherent { return .unavailable("cache=\(cache) does not watch the layers") }
    return .on
  }

  /// All layers, top first.
  func layers(above main: [UInt8]) -> [LaidPath] {
    let above = writable.added.map { LaidPath(atRoot: $0) } + substitutions.map { LaidPath(checked: $0) }
    return above + [LaidPath(atRoot: main)]
  }

  func check() throws(Failure) {
    if overlay.isOn, !overlay.isComplete {
      throw .usage(
        "'lowerdir' and 'upperdir' are for 'bundlefs MOUNTPOINT'; use 'substitution' and 'writable' here")
    }
    if writable == .firstSubstitution, substitutions.isEmpty, !isRemount {
      throw .usage(
        "'writable' needs a directory for the changes: add 'substitution=DIR', or use 'writable=DIR'")
    }
    if writable != .off, mergesTables, passthrough != nil {
      throw .usage(
        "'writable', 'strings=merge' and 'passthrough' cannot be combined; leave one of them out")
    }
    try owners.check()
    if let name = owners.given {
      let other = writable != .off ? "writable" : mergesTables ? "strings=merge" : nil
      if let other { throw .usage("'\(name)' and '\(other)' cannot be combined; leave one of them out") }
    }
    for layer in substitutions.map(LaidPath.init(checked:)) {
      if let fault = FoldedLayer(self).fault(at: layer.place) { throw .usage(fault) }
    }
    if foldsNames, !NameFolding.isAvailable {
      throw .failed("'case=insensitive' needs utf8proc; install the package 'libutf8proc2' or 'libutf8proc3'")
    }
    if control.name == Array("\(resources.scheme):".utf8) {
      throw .usage("'control=\(control.name.shown)' is reserved for resources; choose another name")
    }
  }

  /// Completes the options of fuse-overlayfs by those that hold with them.
  /// - Returns: MAIN; nil without such options.
  mutating func completeOverlay(isRoot: Bool) throws(Failure) -> [UInt8]? {
    try overlay.check(self)
    guard overlay.isOn, let main = overlay.lower.last else { return nil }
    for option in overlay.translated { try read(option) }
    for option in overlay.defaults(isRoot: isRoot) {
      let name = String(option.prefix { $0 != "=" })
      if names.contains(name) || names.contains(OverlayOptions.opposites[name] ?? name) { continue }
      try read(Array(option.utf8))
    }
    substitutionLists = [overlay.lower.dropLast().map { LaidPath(atRoot: $0).name }]
    if let upper = overlay.upper { writable = .directory(upper) }
    overlay.isComplete = true
    return main
  }

  private mutating func pass(_ given: MountOption) throws(Failure) {
    let option = given.text
    if MountFlags.contains(option) { flags.append(option) }
    if Self.passedNames.contains(option) {
      if option != "default_permissions" { passed.append(Array(option.utf8)) }
    } else if !isSloppy, !Self.ignoredNames.contains(option),
      !Self.ignoredPrefixes.contains(where: option.hasPrefix),
      !isRemount || !Self.kernelPrefixes.contains(where: option.hasPrefix)
    {
      let fault = OptionNames.fault(of: given)
      throw .usage(fault + (separatorHint.map { "; \($0)" } ?? ""))
    }
  }
}
