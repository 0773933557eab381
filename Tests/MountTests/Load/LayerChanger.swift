import Posix
import TestSupport

/// Makes random changes to layers that could confuse a mount.
struct LayerChanger {
  private let layers: [ByteString]
  /// A folder with the names of the layers, whose files must never be read through the mount.
  private let outside: ByteString
  private var random: SplitMix64

  init(layers: [ByteString], outside: ByteString, seed: UInt64) {
    self.layers = layers
    self.outside = outside
    random = SplitMix64(seed: seed)
  }

  /// Makes one change, which may fail because its target has vanished.
  mutating func step() {
    let layer = random.pick(layers)
    var path = layer
    for _ in 0..<random.number(0...2) { path = path / directoryName() }
    let file = fileName("f")
    switch random.number(0...19) {
    case 0..<5: try? (path / file).replace(content())
    case 5..<8: try? (path / fileName("w")).write(content())
    case 8: try? (path / file).remove()
    case 9: try? (path / fileName("w")).remove()
    case 10..<12: try? (path / directoryName()).makeDirectories()
    case 12: (path / directoryName()).removeTree()
    case 13: try? (path / directoryName()).rename(to: layer / directoryName())
    case 14: swapForLink(path / directoryName())
    case 15: try? (path / file).makeLink(to: outside / file)
    case 16: try? (path / (".wh." + file)).write("")
    case 17: try? (path / (".wh." + random.pick([file, directoryName()]))).remove()
    case 18: try? (path / (".wh." + directoryName())).write("")
    default: toggleOpaque(path)
    }
  }

  /// Replaces a folder briefly by a link to the outside folder.
  private mutating func swapForLink(_ path: ByteString) {
    let aside = path.parent / "aside"
    guard (try? path.rename(to: aside)) != nil else { return }
    try? path.makeLink(to: outside)
    Clock.sleep(Double(random.number(0...300)) / 1e6)
    try? path.remove()
    if (try? aside.rename(to: path)) == nil { (aside).removeTree() }
  }

  private mutating func toggleOpaque(_ path: ByteString) {
    if random.percent(50) {
      try? path.setAttribute("trusted.overlay.opaque", [UInt8(ascii: "y")])
    } else {
      try? path.removeAttribute("trusted.overlay.opaque")
    }
  }

  private mutating func directoryName() -> ByteString { ByteString("d\(random.number(0...5))") }

  private mutating func fileName(_ letter: ByteString) -> ByteString {
    letter + ByteString("\(random.number(0...7))")
  }

  /// A single repeated byte, determined by the length, so that torn contents are recognizable.
  private mutating func content() -> [UInt8] {
    let size = random.pick([0, 1, 100, 4096, 10_000, 70_000, 300_000]) + random.number(0...25)
    return [UInt8](repeating: UInt8(ascii: "a") + UInt8(size % 26), count: size)
  }
}
