import Bundles
import Routing
import Volume

/// The options after `-o`.
struct MountOptions {
  /// The substitution directories, top first.
  var substitutions: [[UInt8]] = []
  var servesExtendedAttributes = true
  /// Whether programs that watch the mount are told of changes.
  var announces = true
  var cache = CacheMode.coherent
  var fsname: [UInt8]?
  var control = ControlOptions()
  /// Files of routes, in order.
  var routes: [[UInt8]] = []
  var resources = ResourceSettings()
  var isDebug = false
  /// Bytes that unpacked contents of archives may take; nil: as many as usual.
  var cacheSize: Int?
  /// Whether what is mounted already is to be changed.
  var isRemount = false
  /// Flags of the mount, in the order in which they were given.
  var flags: [String] = []
  /// Whether unknown options are passed over, as mount(8) asks its helpers to with `-s`.
  var isSloppy = false
  /// The most bytes of a READ; nil: as many as the kernel likes.
  var maxRead: UInt32?
  /// From which size on, in bytes, files are passed through; nil for none.
  var passthrough: UInt64?
  /// What libfuse and mount(2) are told as it is.
  var passed: [[UInt8]] = []

  /// As much as a READ fetches: below, a file takes one message anyway.
  private static let usualPassthrough: UInt64 = 128 << 10

  /// Options that are libfuse's or the kernel's business.
  private static let passedNames: Set<String> = [
    "allow_other", "allow_root", "auto_unmount", "default_permissions",
    "ro", "suid", "nosuid", "dev", "nodev", "exec", "noexec", "atime", "noatime", "sync", "async", "dirsync",
  ]
  /// Options that mount(8) and fstab carry for others; `rw` is the default and says nothing.
  private static let ignoredNames: Set<String> = [
    "rw", "defaults", "auto", "noauto", "user", "nouser", "users", "owner", "group", "nofail", "_netdev",
    "relatime", "norelatime", "strictatime", "nostrictatime", "diratime", "nodiratime", "lazytime",
    "nolazytime", "silent", "loud", "subtype=bundlefs",
  ]
  private static let ignoredPrefixes = ["x-", "X-", "user=", "comment=", "uhelper=", "helper="]

  /// Reads a list of options, separated by commas; a backslash takes the next byte's meaning away.
  mutating func read(_ list: [UInt8]) throws(Failure) {
    for option in Self.split(list, at: UInt8(ascii: ",")) where !option.isEmpty {
      try readOne(option)
    }
  }

  private mutating func readOne(_ option: [UInt8]) throws(Failure) {
    let (name, value) = Self.nameAndValue(option)
    let shown = Self.unescape(option).shown
    switch (name, value) {
    case ("substitution", let value?):
      for path in Self.split(value, at: UInt8(ascii: ":")) {
        if path.isEmpty { throw .usage("'\(shown)' has an empty directory name") }
        substitutions.append(Self.unescape(path))
      }
    case ("substitution", nil): throw .usage("'substitution' needs a directory: substitution=DIR")
    case ("xattr", let value): servesExtendedAttributes = try Self.isOn("xattr", value, shown)
    case ("announce", let value): announces = try Self.isOn("announce", value, shown)
    case ("cache", let value):
      guard let mode = value.flatMap({ Self.cacheMode($0.shown) }) else {
        throw .usage("'\(shown)' is none of cache=coherent, cache=none and cache=SECONDS")
      }
      cache = mode
    case ("routes", let value?) where !value.isEmpty: routes.append(Self.unescape(value))
    case ("routes", _): throw .usage("'routes' needs a file: routes=FILE")
    case ("control", let value):
      guard let name = value.map(Self.unescape), Self.isName(name) else {
        throw .usage("'\(shown)' is no control=NAME: a name without '/', of at most 255 bytes")
      }
      control.name = name
    case ("routes_mode", let value):
      guard let mode = value.flatMap({ UInt32($0.shown, radix: 8) }), mode <= 0o777 else {
        throw .usage("'\(shown)' is no routes_mode=OCTAL between 000 and 777, such as routes_mode=620")
      }
      control.mode = mode
    case ("cache_size", let value):
      guard let size = value.flatMap({ Self.byteCount($0.shown) }) else {
        throw .usage("'\(shown)' is no cache_size=BYTES, such as cache_size=512M (K, M and G are known)")
      }
      cacheSize = size
    case ("passthrough", nil): passthrough = Self.usualPassthrough
    case ("passthrough", let value?):
      guard let size = Self.byteCount(value.shown) else {
        throw .usage("'\(shown)' is no passthrough=BYTES, such as passthrough=1M (K, M and G are known)")
      }
      passthrough = UInt64(size)
    case ("hide_routes", nil): control.isHidden = true
    case ("languages", let value): try readLanguages(value, shown)
    case ("scale", let value):
      guard let scale = value.flatMap({ Int($0.shown) }), (1...100).contains(scale) else {
        throw .usage("'\(shown)' is no scale=N: a whole number from 1 to 100")
      }
      resources.lookup.scale = scale
    case ("idiom", let value):
      guard let idiom = value.flatMap({ ResourceOptions.Idiom(rawValue: $0.shown) }) else {
        throw .usage("'\(shown)' is neither idiom=phone nor idiom=pad")
      }
      resources.lookup.idiom = idiom
    case ("resource_scheme", let value):
      guard let value, Scheme.isName(value), value.shown.lowercased() != "bundlefs" else {
        throw .usage(
          "'\(shown)' is no resource_scheme=NAME: letters, digits, '+', '-' and '.', first a letter; "
            + "not bundlefs")
      }
      resources.scheme = value.shown.lowercased()
    case ("fsname", let value?): fsname = Self.unescape(value)
    case ("max_read", let value?):
      guard let bytes = UInt32(value.shown), bytes >= 4096 else {
        throw .usage("'\(shown)' is not a number of bytes of at least 4096")
      }
      maxRead = bytes
    case ("debug", nil): isDebug = true
    case ("remount", nil): isRemount = true
    default: try pass(shown)
    }
  }

  private static func isOn(
    _ name: String, _ value: [UInt8]?, _ shown: String
  ) throws(Failure) -> Bool {
    guard let value, let isOn = ["on": true, "off": false][value.shown] else {
      throw .usage("'\(shown)' is neither \(name)=on nor \(name)=off")
    }
    return isOn
  }

  /// Whether programs that watch the mount are told of changes, as far as that can be.
  var announceMode: AnnounceMode {
    if !announces { return .off }
    if passed.contains(Array("ro".utf8)) { return .unavailable("the mount is read-only (ro)") }
    if cache != .coherent { return .unavailable("with cache=\(cache) nobody listens for changes") }
    return .on
  }

  /// Makes sure that the options go together.
  func check() throws(Failure) {
    if control.name == Array("\(resources.scheme):".utf8) {
      throw .usage("'control=\(control.name.shown)' is the folder of resources; choose another name")
    }
  }

  private mutating func readLanguages(_ value: [UInt8]?, _ shown: String) throws(Failure) {
    let languages = value.map { Self.split($0, at: UInt8(ascii: ":")).map(Self.unescape) } ?? []
    let isName = { (name: [UInt8]) in !name.isEmpty && !name.contains(UInt8(ascii: "/")) }
    guard !languages.isEmpty, languages.allSatisfy(isName) else {
      throw .usage("'\(shown)' is no languages=LANG[:LANG...], such as languages=fr:en")
    }
    resources.lookup.languages = languages
  }

  /// A number of bytes, with or without a unit of 1024, 1024² or 1024³.
  private static func byteCount(_ value: String) -> Int? {
    let units: [Character: Int] = ["K": 1 << 10, "M": 1 << 20, "G": 1 << 30]
    let unit = value.last.flatMap { units[Character($0.uppercased())] }
    guard let count = Int(unit == nil ? value : String(value.dropLast())), count >= 0 else { return nil }
    let (bytes, isTooMuch) = count.multipliedReportingOverflow(by: unit ?? 1)
    return isTooMuch ? nil : bytes
  }

  private static func cacheMode(_ value: String) -> CacheMode? {
    switch value {
    case "coherent": return .coherent
    case "none": return CacheMode.none
    default:
      guard let seconds = Double(value), seconds >= 0, seconds <= 1e9 else { return nil }
      return seconds == 0 ? CacheMode.none : .seconds(seconds)
    }
  }

  /// Whether a file can have the name.
  private static func isName(_ name: [UInt8]) -> Bool {
    let dot = UInt8(ascii: ".")
    return !name.isEmpty && name.count <= 255 && !name.contains(UInt8(ascii: "/")) && name != [dot]
      && name != [dot, dot]
  }

  private mutating func pass(_ option: String) throws(Failure) {
    if MountFlags.has(option) { flags.append(option) }
    if Self.passedNames.contains(option) {
      if option != "default_permissions" { passed.append(Array(option.utf8)) }
    } else if !isSloppy, !Self.ignoredNames.contains(option),
      !Self.ignoredPrefixes.contains(where: option.hasPrefix)
    {
      throw .usage("unknown mount option '\(option)'")
    }
  }

  private static func nameAndValue(_ option: [UInt8]) -> (String, [UInt8]?) {
    guard let place = option.firstIndex(of: UInt8(ascii: "=")) else { return (option.shown, nil) }
    return (Array(option[..<place]).shown, Array(option[(place + 1)...]))
  }

  /// The parts between the separators that no backslash precedes; backslashes stay.
  static func split(_ list: [UInt8], at separator: UInt8) -> [[UInt8]] {
    var parts: [[UInt8]] = [[]]
    var isEscaped = false
    for byte in list {
      if byte == separator, !isEscaped {
        parts.append([])
      } else {
        parts[parts.count - 1].append(byte)
      }
      isEscaped = byte == UInt8(ascii: "\\") && !isEscaped
    }
    return parts
  }

  /// The bytes without the backslashes before `,`, `:` and `\`.
  static func unescape(_ bytes: [UInt8]) -> [UInt8] {
    let special: [UInt8] = [UInt8(ascii: ","), UInt8(ascii: ":"), UInt8(ascii: "\\")]
    var result: [UInt8] = []
    var place = 0
    while place < bytes.count {
      if bytes[place] == UInt8(ascii: "\\"), place + 1 < bytes.count, special.contains(bytes[place + 1]) {
        place += 1
      }
      result.append(bytes[place])
      place += 1
    }
    return result
  }
}
