import Posix
import TestSupport

/// A layer's folder that only this process changes, and its expected content.
struct LayerChurn {
  let layer: ByteString
  private var expected: [ByteString: StatResult] = [:]
  private var random = SplitMix64(seed: 8)
  private var number = 0

  init(_ layer: ByteString) { self.layer = layer }

  /// Changes one of a few names, which also exist in the folder beneath the mount.
  mutating func step() throws {
    number += 1
    let name = ByteString("f\(random.number(0...39))")
    let path = layer / name
    let exists = expected[name] != nil
    let isLink = expected[name]?.kind == .symbolicLink
    switch random.number(0...4) {
    case 0 where exists:
      try path.remove()
      expected[name] = nil
    case 1 where exists:
      let other = ByteString("f\(random.number(0...39))")
      try path.rename(to: layer / other)
      if other != name { expected[name] = nil }
      expected[other] = try (layer / other).status()
    case 2 where exists && !isLink:
      try path.setMode(UInt32(random.pick([0o644, 0o600, 0o640])))
      expected[name] = try path.status()
    case 3 where !exists:
      try path.makeLink(to: "f1")
      expected[name] = try path.status()
    default:
      if isLink { try path.remove() }
      try path.write("change \(number)\n")
      expected[name] = try path.status()
    }
  }

  /// Deviations from the expected content.
  func differences() throws -> [String] {
    let names = Set(try layer.names())
    let unexpected = names.symmetricDifference(expected.keys).map { "\($0): present or missing" }
    return try unexpected
      + expected.filter { names.contains($0.key) }.compactMap { name, status in
        let now = try (layer / name).status()
        return now == status ? nil : "\(name): \(now) instead of \(status)"
      }
  }
}
