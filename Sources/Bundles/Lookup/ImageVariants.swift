/// The file names of an image's variants, in UIImage's search order.
enum ImageVariants {
  /// The candidate names, best first: only the name itself unless the options enable variants and the name has no
  /// extension or an image's. A leading dot does not begin an extension.
  static func candidates(for name: [UInt8], options: ResourceOptions) -> [[UInt8]] {
    guard options.hasVariants else { return [name] }
    let (base, suffix) = split(name)
    if let suffix {
      guard extensions.contains(String(decoding: lowercased(suffix), as: UTF8.self)) else { return [name] }
    }
    let device = Array((options.idiom ?? .phone).suffix.utf8)
    return names(
      base: base, suffix: [dot] + (suffix ?? Array("png".utf8)), device: device, scale: options.scale ?? 1)
  }

  /// UIImage's formats, and newer ones.
  private static let extensions: Set<String> = [
    "avif", "bmp", "bmpf", "cur", "gif", "heic", "heif", "ico", "jpeg", "jpg", "jxl", "pdf", "png", "svg",
    "tif", "tiff", "webp", "xbm",
  ]

  private static let dot = UInt8(ascii: ".")

  private static func names(base: [UInt8], suffix: [UInt8], device: [UInt8], scale: Int) -> [[UInt8]] {
    var endings: [[UInt8]] = []
    for scale in scales(from: scale) {
      let at = Array("@\(scale)x".utf8)
      let only = Array("_\(scale)only_".utf8)
      endings += [at + device, only + at + device, at, only + at]
    }
    let (atOne, onlyOne) = (Array("@1x".utf8), Array("_1only_".utf8))
    endings += [device, [], atOne + device, onlyOne + device, atOne, onlyOne]
    return endings.map { base + $0 + suffix } + [base + device, base]
  }

  /// The screen's scale, then the lower ones that images usually have, down to 2.
  private static func scales(from scale: Int) -> [Int] {
    scale < 2 ? [] : [scale] + [3, 2].filter { $0 < scale }
  }

  /// The scale of a variant, by its name: 2 for `logo@2x~ipad.png`.
  static func scale(of name: [UInt8]) -> Int {
    var base = split(name).base
    for device in ResourceOptions.Idiom.allCases.map({ Array($0.suffix.utf8) })
    where base.suffix(device.count).elementsEqual(device) {
      base.removeLast(device.count)
    }
    guard base.last == UInt8(ascii: "x"), let at = base.lastIndex(of: UInt8(ascii: "@")) else { return 1 }
    let scale = Int(String(decoding: base[(at + 1)...].dropLast(), as: UTF8.self)) ?? 1
    return max(1, scale)
  }

  private static func split(_ name: [UInt8]) -> (base: [UInt8], suffix: [UInt8]?) {
    guard let index = name.lastIndex(of: dot), index > 0, index + 1 < name.count else { return (name, nil) }
    return (Array(name[..<index]), Array(name[(index + 1)...]))
  }
}
