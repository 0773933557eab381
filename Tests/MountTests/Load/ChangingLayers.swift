import Posix
import TestSupport

/// Two layers for `LayerChanger`s, and a folder outside that must never be read through a mount of them.
struct ChangingLayers {
  let fixture: Fixture
  private let outside: ByteString

  /// The layers' roots, top to bottom.
  var roots: [ByteString] { [fixture.substitution, fixture.main] }

  /// Makes the layers and fills them by 2,000 random changes.
  init(seed: UInt64) throws {
    fixture = try Fixture(isFilled: false)
    outside = try fixture.folder.folder("outside")
    try Self.fillOutside(outside)
    var warmUp = changer(seed: seed)
    for _ in 0..<2000 { warmUp.step() }
  }

  /// A changer of these layers.
  func changer(seed: UInt64) -> LayerChanger {
    LayerChanger(layers: roots, outside: outside, seed: seed &+ Seeds.first)
  }

  /// Fills the outside folder with every name that is read in the layers. It is read-only because changes by path
  /// follow the links that lead there.
  private static func fillOutside(_ outside: ByteString) throws {
    try Command("mount", "-t", "tmpfs", "tmpfs", outside.text).check()
    for index in 0...7 {
      for letter in ["f", "w"] as [ByteString] {
        let content = [UInt8](repeating: UInt8(ascii: "Z"), count: 5000)
        try (outside / (letter + ByteString("\(index)"))).write(content)
      }
    }
    for index in 0...5 { try (outside / ByteString("d\(index)")).makeLink(to: ".") }
    try Command("mount", "-o", "remount,ro", outside.text).check()
  }
}
