import Glibc
import Posix
import TestSupport
import Testing

/// Random changes of layers, by programs and by the mount itself, between looks at the times that the mount shows.
extension MountTests {
  @Suite(.enabled(if: Mount.hasControl)) struct VisibleTimeModelTests {
    @Test(
      "a time never goes back, and two contents never share time and size", .timeLimit(.minutes(10)),
      arguments: VisibleTimeRun.seeds)
    func matches(seed: UInt64) throws { try VisibleTimeRun(seed: seed).run() }
  }
}

/// Changes and looks, all determined by a seed.
private final class VisibleTimeRun {
  private static let stepsPerSeed = 60
  static var seeds: [UInt64] {
    Seeds.chosen(max(1, TestLength.steps(full: 1200, brief: 300) / stepsPerSeed))
  }

  /// What a program has seen of a name.
  private struct Look: CustomStringConvertible {
    let content: String
    let modified: TimeSpec
    let description: String
  }

  private let seed: UInt64
  private var random: SplitMix64
  private let fixture: VisibleTimeFixture
  private let upper: ByteString
  private let isWritable: Bool
  private var stack: [ByteString]
  private var looks: [ByteString: [Look]] = [:]
  private var count = 0
  private var log: [String] = []
  private let names: [ByteString] = ["a", "b", "d/a", "d/b", "d/e/a"]

  init(seed: UInt64) throws {
    self.seed = seed
    random = SplitMix64(seed: seed)
    isWritable = seed % 3 == 1
    fixture = try VisibleTimeFixture(["cache=coherent", "cache=none"][seed % 5 == 2 ? 1 : 0])
    upper = fixture.folder / "upper"
    if isWritable { fixture.setup.options.append("writable=" + upper) }
    if seed % 4 == 3 { fixture.setup.options.append("case=insensitive") }
    stack = [fixture.top, fixture.further]
    fixture.setup.substitutions = stack
    fixture.setup.lifetime = 600
    for name in names { try write(fixture.main / name) }
  }

  private var point: ByteString { fixture.setup.point }

  func run() throws {
    var steps = 0
    while steps < Self.stepsPerSeed {
      fixture.setup.substitutions = stack
      try withMount(fixture.setup) { mount in
        stack = fixture.setup.substitutions
        repeat {
          try look(mount)
          for _ in 0..<random.number(0...2) { try change(mount) }
          steps += 1
        } while steps < Self.stepsPerSeed && random.number(0...9) > 0
        try look(mount)
      }
      log.append("unmounted")
      for _ in 0..<random.number(0...2) { try changeLayers() }
    }
  }

  // MARK: - Looks

  private func look(_ mount: Mount) throws {
    try mount.barrier()
    for name in names where random.number(0...3) > 0 {
      guard let status = try? (point / name).status(), status.kind == .regular else { continue }
      let content = try (point / name).readText()
      let again = try (point / name).status()
      let seen = Look(
        content: content, modified: status.modified, description: "\(content) \(status.modified)")
      if again.modified != status.modified { fail(name, seen, "changes to \(again.modified)") }
      if status.changed < status.modified { fail(name, seen, "has the change time \(status.changed)") }
      check(seen, of: name)
      looks[name, default: []].append(seen)
    }
  }

  private func check(_ seen: Look, of name: ByteString) {
    // All contents have one size.
    for other in looks[name] ?? [] where other.content != seen.content && other.modified == seen.modified {
      fail(name, seen, "has the time of \(other)")
    }
    if let last = looks[name]?.last, seen.modified < last.modified {
      fail(name, seen, "goes back from \(last)")
    }
  }

  private func fail(_ name: ByteString, _ look: Look, _ text: String) {
    Issue.record("seed \(seed): \(name): \(look) \(text)\n\(log.suffix(14).joined(separator: "\n"))")
  }

  // MARK: - Changes

  private func nextContent() -> String {
    count += 1
    return String("\(1_000_000 + count)".dropFirst())
  }

  /// Waits until the file system's clock has ticked, so that a change in place has another time.
  private func tick() throws {
    let probe = fixture.folder / "probe"
    try probe.write("")
    let before = try probe.status().modified
    while try probe.status().modified == before { try probe.write("") }
  }

  private func write(_ file: ByteString) throws {
    try fixture.write(nextContent(), to: file, year: Int64(random.number(1995...2005)))
  }

  private func change(_ mount: Mount) throws {
    switch random.number(0...9) {
    case 0:
      let all = [fixture.top, fixture.further]
      let layers = random.pick([all, all.reversed(), [all[0]], [all[1]], []])
      // The one that takes changes stays on top.
      try mount.setLayers(isWritable ? [upper] + layers : layers)
      stack = layers
      log.append("layers \(stack)")
    case 1:
      try mount.killWorker()
      log.append("killed")
    case 2:
      if geteuid() == 0 { try ByteString("/proc/sys/vm/drop_caches").write("2") }
      log.append("forgotten")
    case 3...5 where isWritable:
      try mount.barrier()
      try changeByMount()
    default: try changeLayers()
    }
  }

  private func changeLayers() throws {
    try tick()
    let name = random.pick(names)
    let layer = random.pick([fixture.main, fixture.top, fixture.further])
    let file = layer / name
    let kind = (try? file.status())?.kind
    log.append("\(file): ")
    switch random.number(0...4) {
    case 0 where kind == .regular:
      try file.write(nextContent())
      log[log.count - 1] += "edited"
    case 1 where kind != nil:
      try file.remove()
      log[log.count - 1] += "removed"
    case 2 where layer != fixture.main && kind == nil:
      try file.parent.makeDirectories()
      try file.makeWhiteout()
      log[log.count - 1] += "whiteout"
    case 3 where kind == .regular:
      let other = layer / random.pick(names)
      try other.parent.makeDirectories()
      try file.rename(to: other)
      log[log.count - 1] += "renamed to \(other)"
    default:
      if kind != nil, kind != .regular { try file.remove() }
      try write(file)
      log[log.count - 1] += "replaced"
    }
  }

  private func changeByMount() throws {
    try tick()
    let name = random.pick(names)
    let file = point / name
    let exists = file.exists
    log.append("by the mount \(name): ")
    switch random.number(0...4) {
    case 0 where exists:
      try file.setMode(UInt32(random.pick([0o600, 0o644])))
      log[log.count - 1] += "mode"
    case 1 where exists:
      try file.setModified(VisibleTimeFixture.time(Int64(random.number(1995...2005))))
      // It was set.
      looks[name] = []
      log[log.count - 1] += "time"
    case 2 where exists:
      try file.remove()
      log[log.count - 1] += "removed"
    case 3 where exists:
      let other = random.pick(names)
      guard other != name, (try? (point / other).parent.status())?.kind == .directory else { return }
      try file.rename(to: point / other)
      // Its time may have been set.
      looks[other] = []
      log[log.count - 1] += "renamed to \(other)"
    default:
      try file.parent.makeDirectories()
      try file.write(nextContent())
      log[log.count - 1] += "written"
    }
  }
}
