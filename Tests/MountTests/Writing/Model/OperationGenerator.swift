import Glibc
import Posix
import TestSupport

/// Chooses operations by what a tree has now.
struct OperationGenerator {
  private var random: SplitMix64
  private let names: [ByteString]
  private let root: ByteString
  /// The entries, the root first.
  private var entries: [(path: ByteString, kind: FileKind?)] = []
  private var nextSlot = 0
  /// Whether files get set-user-ID and set-group-ID bits. With passthrough also root's writes to an open file clear them.
  var setsIDBits = true

  /// More entries than these make removals likelier.
  private static let crowd = 70

  init(_ root: ByteString, names: [ByteString], random: SplitMix64) {
    (self.root, self.names, self.random) = (root, names, random)
  }

  /// The next operation, and the user that makes it.
  /// - Parameter slots: the descriptors that are kept.
  mutating func next(_ slots: [Int]) throws -> (WriteOperation, user: UInt32) {
    entries = [("", .directory)]
    try read("")
    let user: UInt32 = random.percent(25) ? 1000 : 0
    if !slots.isEmpty, random.percent(25) { return (.held(slot: random.pick(slots), heldOperation()), user) }
    if entries.count > Self.crowd, random.percent(40) { return (removal(), user) }
    switch random.number(0...99) {
    case 0..<34: return (contentOperation(slots), user)
    case 34..<58: return (newEntry(), user)
    case 58..<70: return (removal(), user)
    case 70..<80: return (renaming(), user)
    case 80..<95: return (attributeOperation(), user)
    default: return (random.percent(50) ? .list(directory()) : .status(anyPath()), user)
    }
  }

  private mutating func read(_ directory: ByteString) throws {
    for name in try (root / directory).names() {
      let kind = try (root / directory / name).status().kind
      entries.append((directory / name, kind))
      if kind == .directory { try read(directory / name) }
    }
  }

  // MARK: - Content

  private mutating func contentOperation(_ slots: [Int]) -> WriteOperation {
    let file = regular()
    switch random.number(0...9) {
    case 0, 1: return .write(file, flags: O_WRONLY, at: offset(), content: content())
    case 2: return .write(file, flags: O_WRONLY | O_TRUNC, at: 0, content: content())
    case 3: return .write(file, flags: O_WRONLY | O_APPEND, at: 0, content: content())
    case 4: return .read(file, at: offset(), count: 5000)
    case 5 where kind(of: file) != .symbolicLink:
      return .truncate(file, size: random.percent(30) ? 0 : offset())
    case 6: return .allocate(file, mode: allocation(), at: offset(), count: random.number(1...20_000))
    case 7: return create()
    default:
      if slots.count >= 8 { return .read(file, at: 0, count: 20_000) }
      nextSlot += 1
      return .open(
        slot: nextSlot, file, flags: random.pick([O_RDONLY, O_RDWR, O_RDWR | O_APPEND, O_RDWR | O_TRUNC]))
    }
  }

  private mutating func heldOperation() -> HeldOperation {
    switch random.number(0...11) {
    case 0..<3: .read(at: offset(), count: random.pick([1, 4096, 30_000]))
    case 3..<5: .write(at: offset(), content())
    case 5: .append(content())
    case 6: .truncate(size: offset())
    case 7: .allocate(mode: allocation(), at: offset(), count: random.number(1...20_000))
    case 8: .setMode(mode())
    case 9: .status
    case 10: .synchronize
    default: .close
    }
  }

  private mutating func create() -> WriteOperation {
    var path = random.percent(75) ? newPath() : regular()
    // A device may be a real one, and only on some file systems has a FIFO the time of what was written to it.
    if let kind = kind(of: path), [.characterDevice, .blockDevice, .fifo].contains(kind) { path = regular() }
    let flags = random.pick([
      O_WRONLY, O_WRONLY | O_EXCL, O_WRONLY | O_TRUNC, O_RDWR | O_APPEND, O_RDWR | O_EXCL,
    ])
    return .create(path, mode: mode(), flags: flags, content: content())
  }

  /// `FALLOC_FL_KEEP_SIZE` is 1, `FALLOC_FL_PUNCH_HOLE` 2, `FALLOC_FL_ZERO_RANGE` 16.
  private mutating func allocation() -> CInt { random.pick([0, 1, 3, 16, 17]) }

  // MARK: - Names

  private mutating func newEntry() -> WriteOperation {
    let path = random.percent(90) ? newPath() : anyPath()
    switch random.number(0...9) {
    case 0..<3: return create()
    case 3..<6: return .makeDirectory(path, mode: mode())
    case 6: return .makeLink(path, target: random.pick(["nowhere", "a", "b/c"]))
    case 7: return .makeNode(path, mode: random.pick([FileKind.fifo, .socket]).rawValue | mode() & 0o777)
    default: return .makeHardLink(path, of: random.percent(80) ? file() : anyPath())
    }
  }

  private mutating func removal() -> WriteOperation {
    let path = random.percent(10) ? newPath() : nonRoot()
    if random.percent(10) { return random.percent(50) ? .unlink(path) : .removeDirectory(path) }
    return kind(of: path) == .directory ? .removeDirectory(path) : .unlink(path)
  }

  private mutating func renaming() -> WriteOperation {
    let flags: UInt32 = random.pick([0, 0, 0, 0, 1, 2])
    let source = random.percent(95) ? nonRoot() : newPath()
    let isOver = flags == 2 ? random.percent(90) : random.percent(40)
    return .rename(source, to: isOver ? nonRoot() : newPath(), flags: flags)
  }

  // MARK: - Attributes

  private mutating func attributeOperation() -> WriteOperation {
    let path = random.percent(95) ? anyPath() : newPath()
    let isLink = kind(of: path) == .symbolicLink
    let name = random.pick(["user.comment", "user.x.y", "user.ü"] as [ByteString])
    switch random.number(0...9) {
    case 0..<3 where !isLink && path.count > 0: return .setMode(path, mode())
    case 3..<5 where path.count > 0:
      // Both cannot be kept: ext4 then refuses others to take the set-user-ID bit away, and FUSE does not.
      let user = owner()
      return .setOwner(path, user, group: user == .max ? 1000 : owner())
    case 5..<7: return .setTimes(path, accessed: time(), modified: time())
    case 7: return .removeAttribute(path, name)
    default:
      let size = random.number(0...60)
      return .setAttribute(path, name, (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31) })
    }
  }

  private mutating func owner() -> UInt32 { random.pick([.max, 0, 1, 1000, 1000, 65534]) }

  /// Never later than now, since times after the start are compared as recent only.
  private mutating func time() -> TimeSpec? {
    if random.percent(25) { return nil }
    return TimeSpec(
      seconds: Int64(random.number(-1_000_000_000...1_500_000_000)),
      nanoseconds: UInt32(random.number(0...999_999_999)))
  }

  private mutating func mode() -> UInt32 {
    let mode = UInt32(
      random.percent(70) ? random.pick([0o644, 0o755, 0o777, 0o666]) : random.number(0...0o7777))
    return Self.withoutLockingMark(setsIDBits ? mode : mode & 0o1777)
  }

  /// A set-group-ID bit without group execution once marked mandatory locking: the kernel clears it when others write
  /// on ext4, but not on FUSE.
  static func withoutLockingMark(_ mode: UInt32) -> UInt32 {
    mode & 0o2010 == 0o2000 ? mode & ~0o2000 : mode
  }

  // MARK: - Paths

  private func kind(of path: ByteString) -> FileKind? { entries.first { $0.path == path }?.kind }

  private mutating func anyPath() -> ByteString { random.pick(entries).path }

  private mutating func nonRoot() -> ByteString {
    entries.count > 1 ? random.pick(Array(entries.dropFirst())).path : random.pick(names)
  }

  private mutating func pick(_ isWanted: (FileKind?) -> Bool) -> ByteString {
    let found = entries.filter { isWanted($0.kind) }
    return found.isEmpty ? newPath() : random.pick(found).path
  }

  private mutating func directory() -> ByteString { pick { $0 == .directory } }

  private mutating func file() -> ByteString { pick { $0 != .directory } }

  /// A regular file, or now and then an entry that is not one; never a device, which the tree beside may really have.
  private mutating func regular() -> ByteString {
    if random.percent(92) { return pick { $0 == .regular } }
    return pick { $0 == .directory || $0 == .symbolicLink || $0 == .socket }
  }

  /// A name in a directory, which may be in use; now and then below a file, but not a symbolic link, which leads out of
  /// the tree.
  private mutating func newPath() -> ByteString {
    let parents = entries.filter { $0.kind == .regular }
    let parent = random.percent(97) || parents.isEmpty ? directory() : random.pick(parents).path
    return parent / random.pick(names)
  }

  // MARK: - Sizes

  private mutating func offset() -> Int { random.number(0...random.pick([10, 5000, 5000, 40_000])) }

  private mutating func content() -> [UInt8] {
    let size = random.pick([0, 1, 10, 4096, 5000, 30_000])
    var state = random.next()
    return (0..<size).map { _ in
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return UInt8(truncatingIfNeeded: state >> 33)
    }
  }
}
