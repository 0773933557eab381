import Glibc
import Posix
import TestSupport

/// Makes random layers and operations; the same for the same seed.
struct TreeGenerator {
  var random: SplitMix64
  private static let names: [ByteString] = ["a", "b", "c", "d"]

  init(seed: UInt64) { random = SplitMix64(seed: seed) }

  // MARK: - Layers

  /// Fills a directory with entries.
  /// - Parameter hides: whether there are whiteouts and opaque directories.
  mutating func fill(_ directory: ByteString, hides: Bool, depth: Int = 0) throws {
    for name in Self.names where random.percent(depth == 0 ? 85 : 55) {
      try makeEntry(directory / name, hides: hides, depth: depth)
    }
  }

  private mutating func makeEntry(_ path: ByteString, hides: Bool, depth: Int) throws {
    let choice = random.number(0...99)
    switch choice {
    case 0..<12 where hides: return try path.makeWhiteout()
    case 0..<60 where depth < 2:
      try path.makeDirectory()
      try fill(path, hides: hides, depth: depth + 1)
      if hides, random.percent(20) { try path.setAttribute("trusted.overlay.opaque", [UInt8(ascii: "y")]) }
      if random.percent(15) { try path.setAttribute("system.posix_acl_default", acl()) }
    case 60..<70: try path.makeLink(to: Operation.linkTarget)
    case 70..<76: try path.makeNode(mode: FileKind.fifo.rawValue | 0o644)
    default: try makeFile(path)
    }
    try decorate(path)
  }

  private mutating func makeFile(_ path: ByteString) throws {
    try path.write(bytes(random.number(0...5000)))
    if random.percent(30) {
      try path.setSize(100_000)
      try path.overwrite(bytes(3000), at: 70_000)
    }
    if random.percent(15) { try path.setAttribute("system.posix_acl_access", acl()) }
  }

  private mutating func decorate(_ path: ByteString) throws {
    let kind = try path.status().kind
    if random.percent(40) { try path.setOwner(1000, group: 1001) }
    if kind != .symbolicLink, random.percent(50) { try path.setMode(mode()) }
    if kind == .regular || kind == .directory, random.percent(25) {
      try path.setAttribute("user.note", bytes(random.number(1...60)))
    }
    if random.percent(10) { try path.setAttribute("trusted.note", bytes(8)) }
    try path.setModified(TimeSpec(seconds: Int64(random.number(1...2_000_000_000)), nanoseconds: 987_654_321))
  }

  private mutating func bytes(_ count: Int) -> [UInt8] {
    let start = UInt8(truncatingIfNeeded: random.next())
    return (0..<count).map { start &+ UInt8(truncatingIfNeeded: $0 &* 7) }
  }

  private mutating func mode() -> UInt32 {
    random.pick([0o644, 0o755, 0o600, 0o4755, 0o2755, 0o6711, 0o1777, 0o2770, 0o444, 0])
  }

  /// An ACL with entries for a user and a mask.
  private mutating func acl() -> [UInt8] {
    func entry(_ tag: UInt8, _ permissions: Int, id: UInt32 = .max) -> [UInt8] {
      let id = (0..<4).map { UInt8(truncatingIfNeeded: id >> (8 * UInt32($0))) }
      return [tag, 0, UInt8(permissions), 0] + id
    }
    let permissions = (0..<5).map { _ in random.number(0...7) }
    return [2, 0, 0, 0] + entry(1, permissions[0]) + entry(2, permissions[1], id: 1000)
      + entry(4, permissions[2]) + entry(0x10, permissions[3]) + entry(0x20, permissions[4])
  }

  // MARK: - Operations

  private mutating func path() -> TreePath {
    (0..<random.pick([1, 1, 2, 2, 2, 3])).map { _ in random.pick(Self.names) }
  }

  /// The path of what can be a directory.
  mutating func directory() -> TreePath { path() }

  private mutating func owner() -> UInt32 { random.pick([0, 0, 1000]) }

  /// An operation that may fail.
  mutating func operation() -> Operation {
    switch random.number(0...99) {
    case 0..<12: return .make(path(), mode: FileKind.regular.rawValue | mode(), device: 0, owner: owner())
    case 12..<22: return .makeDirectory(path(), mode: mode(), owner: owner())
    case 22..<26: return .makeSymbolicLink(path(), owner: owner())
    case 26..<28: return .make(path(), mode: FileKind.fifo.rawValue | mode(), device: 0, owner: owner())
    case 28..<29:
      let device = deviceNumber(major: 1, minor: 3)
      return .make(
        path(), mode: FileKind.characterDevice.rawValue | 0o600, device: device, owner: owner())
    case 29..<35: return .link(path(), path())
    case 35..<47: return .remove(path())
    case 47..<57: return .removeDirectory(path())
    case 57..<77: return .rename(path(), path(), flags: random.pick([0, 0, 0, 1, 2]))
    default: return change()
    }
  }

  private mutating func change() -> Operation {
    switch random.number(0...6) {
    case 0: .changeMode(path(), mode())
    case 1: .changeOwner(path(), random.pick([0, 1000]), group: random.pick([0, 1001]))
    case 2: .resize(path(), random.pick([0, 1, 777, 70_001, 200_000]))
    case 3: .write(path(), bytes(random.number(1...4000)), at: random.pick([0, 10, 65_536]))
    case 4: .setAttribute(path(), random.pick(["user.note", "trusted.note"]), bytes(10))
    case 5: random.percent(50) ? .removeAttribute(path(), "user.note") : setACL()
    default: .setModified(path(), Int64(random.number(1...2_000_000_000)))
    }
  }

  private mutating func setACL() -> Operation {
    .setAttribute(path(), random.pick(["system.posix_acl_default", "system.posix_acl_access"]), acl())
  }
}
