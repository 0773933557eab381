import Posix
import TestSupport

/// The size of generated layers.
struct StackScale: Sendable {
  /// The maximum number of entries of a layer.
  var budget: Int
  /// The number of entries of its root.
  var rootEntries: ClosedRange<Int>
  /// The file sizes to choose from.
  var sizes: [Int]

  static let large = StackScale(
    budget: 60, rootEntries: 5...9, sizes: [0, 0, 1, 7, 100, 511, 4095, 4096, 4097, 20_000, 131_072, 140_001])
  static let small = StackScale(
    budget: 25, rootEntries: 4...7, sizes: [0, 1, 7, 100, 511, 4095, 4096, 4097, 9000])
  /// A tree of a few entries.
  static let tiny = StackScale(budget: 8, rootEntries: 0...3, sizes: [0, 7, 4097])
}

/// Generates a stack of layers from a seed, with few names so that layers overlap often.
struct StackGenerator {
  private var random: SplitMix64
  private var names: [ByteString] = []
  private var layer = PlannedLayer(root: StackGenerator.emptyDirectory)
  private var budget = 0
  private let isOverlayOnly: Bool
  private var limits = StackLimits()
  private let scale: StackScale

  /// - Parameter isOverlayOnly: whether to generate only what overlayfs understands: no `.wh.` files, and opaque
  ///   directories marked by `trusted.overlay.opaque`, except a layer's root.
  /// - Parameter names: the names to choose from; nil lets the seed choose them.
  /// - Parameter limits: what the layers' file system cannot represent is left out.
  static func stack(
    seed: UInt64, count: Int, isOverlayOnly: Bool, scale: StackScale = .large, names: [ByteString]? = nil,
    limits: StackLimits = StackLimits(), foldsNames: Bool = false
  ) -> [PlannedLayer] {
    var generator = StackGenerator(seed: seed, isOverlayOnly: isOverlayOnly, scale: scale)
    generator.limits = limits
    if let names { generator.names = names }
    return (0..<count).map { _ in
      var layer = generator.makeLayer()
      layer.foldsNames = foldsNames
      return layer
    }
  }

  private init(seed: UInt64, isOverlayOnly: Bool, scale: StackScale) {
    random = SplitMix64(seed: seed)
    self.isOverlayOnly = isOverlayOnly
    self.scale = scale
    names = NamePool.choose(using: &random)
  }

  private static let emptyDirectory = PlannedDirectory(
    metadata: PlannedMetadata(
      permissions: 0o755, owner: 0, group: 0, modified: TimeSpec(seconds: 0, nanoseconds: 0)))

  private mutating func makeLayer() -> PlannedLayer {
    layer = PlannedLayer(root: Self.emptyDirectory)
    budget = scale.budget
    let root = makeDirectory(depth: 0)
    layer.root = root
    return layer
  }

  private mutating func makeDirectory(depth: Int) -> PlannedDirectory {
    var directory = PlannedDirectory(metadata: metadata())
    if random.percent(20) { directory.metadata.attributes = userAttributes() }
    let count = depth == 0 ? random.number(scale.rootEntries) : random.number(0...6)
    for _ in 0..<count where budget > 0 {
      budget -= 1
      addEntry(to: &directory, depth: depth)
    }
    addOpaqueMarkers(to: &directory, depth: depth)
    return directory
  }

  private mutating func addEntry(to directory: inout PlannedDirectory, depth: Int) {
    let plain = random.pick(names)
    if !isOverlayOnly && plain.count <= 251 && random.percent(14) {
      let name = ".wh." + plain
      if directory.entries[name] == nil { directory.entries[name] = makeWhiteoutFile() }
      return
    }
    if directory.entries[plain] != nil { return }
    if depth < 4 && random.percent(45) {
      directory.entries[plain] = .directory(makeDirectory(depth: depth + 1))
    } else {
      directory.entries[plain] = .file(makeFile())
    }
  }

  private mutating func addOpaqueMarkers(to directory: inout PlannedDirectory, depth: Int) {
    if isOverlayOnly {
      if depth > 0 && random.percent(15) { directory.opaqueMarkers = .trusted }
      return
    }
    guard random.percent(depth == 0 ? 4 : 15) else { return }
    switch random.number(0...3) {
    case 0: directory.opaqueMarkers = .trusted
    case 1: directory.opaqueMarkers = .user
    case 2: directory.opaqueMarkers = [.trusted, .user]
    default: directory.entries[".wh..wh..opq"] = .file(add(.regular(content: [])))
    }
  }

  /// A `.wh.` entry: mostly an empty file, but its type and content do not matter.
  private mutating func makeWhiteoutFile() -> PlannedEntry {
    switch random.number(0...9) {
    case 0: .directory(makeDirectory(depth: 4))
    case 1: .file(add(.link(target: "nowhere")))
    case 2: .file(add(.fifo))
    case 3: .file(add(.regular(content: [1, 2, 3])))
    default: .file(add(.regular(content: [])))
    }
  }

  private mutating func makeFile() -> Int {
    if !layer.files.isEmpty && random.percent(12) && limits.hasHardLinks {
      // Another name of an existing file.
      return random.number(0...layer.files.count - 1)
    }
    return switch random.number(0...99) {
    case 0..<45: add(.regular(content: content()))
    case 45..<62: add(.link(target: linkTarget()))
    case 62..<67: add(.fifo)
    case 67..<72: add(.socket)
    case 72..<76:
      add(.character(major: UInt32(random.number(1...300)), minor: UInt32(random.number(0...70000))))
    case 76..<80: add(.block(major: UInt32(random.number(0...300)), minor: UInt32(random.number(1...300))))
    default: add(.character(major: 0, minor: 0))
    }
  }

  private mutating func add(_ form: PlannedForm) -> Int {
    var metadata = metadata()
    if form.kind == .symbolicLink { metadata.permissions = 0o777 }
    if form.kind == .regular && random.percent(30) { metadata.attributes = userAttributes() }
    layer.files.append(PlannedFile(form: form, metadata: metadata))
    return layer.files.count - 1
  }

  private mutating func content() -> [UInt8] {
    let size = random.pick(scale.sizes)
    var state = random.next()
    return (0..<size).map { _ in
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return UInt8(truncatingIfNeeded: state >> 33)
    }
  }

  /// Existing, missing, cyclic and unusual targets.
  private mutating func linkTarget() -> ByteString {
    switch random.number(0...6) {
    case 0: "nowhere"
    case 1: "/nonexistent/absolute"
    case 2: "../" + random.pick(names)
    case 3: "./" + random.pick(names) + "/"
    case 4: ByteString([UInt8](repeating: UInt8(ascii: "t"), count: random.number(60...4000)))
    default: random.pick(names)
    }
  }

  private mutating func userAttributes() -> [ByteString: [UInt8]] {
    var attributes: [ByteString: [UInt8]] = [:]
    for _ in 0..<random.number(1...3) {
      let size = random.number(0...60)
      let name = random.pick(["user.comment", "user.mime_type", "user.x.y", "user.ü"] as [ByteString])
      attributes[name] = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 37) }
    }
    return attributes
  }

  private mutating func metadata() -> PlannedMetadata {
    let owners: [UInt32] = [0, 0, 1, 1000, 65534, 4_000_000_000]
    return PlannedMetadata(
      permissions: UInt32(random.number(0...0o7777)), owner: min(random.pick(owners), limits.largestOwner),
      group: min(random.pick(owners), limits.largestOwner),
      modified: timestamp())
  }

  /// From 1901 to 2446, the range of ext4.
  private mutating func timestamp() -> TimeSpec {
    let seconds =
      switch random.number(0...3) {
      case 0: random.number(-2_147_483_648 ... -1)
      case 1: random.number(4_294_967_296...15_032_385_535)
      default: random.number(0...1_800_000_000)
      }
    let nanoseconds = random.percent(20) ? 0 : random.number(1...999_999_999)
    return TimeSpec(seconds: Int64(seconds), nanoseconds: UInt32(nanoseconds))
  }
}

/// What a file system can represent.
struct StackLimits {
  /// The largest user and group ID of new files.
  var largestOwner = UInt32.max
  var hasHardLinks = true

  /// bindfs(1) refuses user IDs from 2^31 on. It calls by the path by which a file was looked up, also for an open file:
  /// ENOENT once that hard link is gone.
  static let bindfs = StackLimits(largestOwner: 65534, hasHardLinks: false)
}
