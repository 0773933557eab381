import TestSupport

/// A bundle with a web page composed of its files and resources, and the page's expected appearance.
enum SamplePage {
  typealias Colour = [Int]

  /// A part of the page, which has its own file.
  enum Part: CaseIterable {
    case style, script, photo, logo
  }

  /// The appearance of the page.
  struct Appearance: Equatable {
    var text: String
    var sizes: [[Int]]
    var colours: [Colour]

    init(_ state: Browser.PageState) {
      (text, sizes, colours) = (state.text, state.sizes, state.colours)
    }

    /// The expected appearance with some parts overridden.
    init(overridden: Set<Part>) {
      let isOverridden = overridden.contains
      text = isOverridden(.script) ? "the override's words" : "the main bundle's words"
      let (photo, logo) = (SamplePage.photo(isOverridden(.photo)), SamplePage.logo(isOverridden(.logo)))
      // The page has the logo twice, with different spellings of its path.
      sizes = [photo.size, logo.size, logo.size]
      colours = [
        background(isOverridden(.style)), box(isOverridden(.script)), photo.colour, logo.colour, logo.colour,
      ]
    }
  }

  /// The pixels that `Appearance.colours` refers to: the background, the box of the script, and the images.
  static let points = [(190, 190), (110, 30), (30, 30), (30, 90), (30, 150)]

  /// The MAIN bundle.
  static func make(in main: ByteString) throws {
    try (main / "index.html").write(index)
    for part in Part.allCases {
      let path = main / mainPath(part)
      try path.parent.makeDirectories()
      try path.write(content(part, isOverride: false))
    }
  }

  /// The path of a part in the MAIN bundle.
  private static func mainPath(_ part: Part) -> ByteString {
    switch part {
    case .style: "style.css"
    case .script: "script.js"
    case .photo: "images/photo.bmp"
    case .logo: "Resources/logo.svg"
    }
  }

  /// The path of a part's override in the substitution. The page refers to the logo by its resource name, so that its
  /// override can be localized.
  static func overridePath(_ part: Part) -> ByteString {
    part == .logo ? "Resources/fr.lproj/logo.svg" : mainPath(part)
  }

  /// The content of a part's file.
  static func content(_ part: Part, isOverride: Bool) -> [UInt8] {
    switch part {
    case .style: [UInt8]("body { background: \(css(background(isOverride))) }".utf8)
    case .script: [UInt8](script(isOverride).utf8)
    case .photo: bitmap(photo(isOverride))
    case .logo: [UInt8](drawing(logo(isOverride)).utf8)
    }
  }

  private static let index = """
    <!doctype html>
    <html>
    <head><meta charset="utf-8"><link rel="stylesheet" href="style.css"></head>
    <body>
    <p id="words" style="position: absolute; left: 100px; top: 80px; width: 80px; margin: 0"></p>
    <div id="box" style="position: absolute; left: 100px; top: 20px; width: 20px; height: 20px"></div>
    <img style="position: absolute; left: 20px; top: 20px" src="images/photo.bmp">
    <img style="position: absolute; left: 20px; top: 80px" src="./rsrc:/logo.svg">
    <img style="position: absolute; left: 20px; top: 140px" src="rsrc%3A/logo.svg">
    <script src="script.js"></script>
    </body>
    </html>

    """

  private struct Picture {
    var size: [Int]
    var colour: Colour
  }

  private static func background(_ isOverride: Bool) -> Colour {
    isOverride ? [20, 30, 40] : [250, 240, 230]
  }
  private static func box(_ isOverride: Bool) -> Colour { isOverride ? [0, 128, 128] : [128, 0, 128] }

  private static func photo(_ isOverride: Bool) -> Picture {
    isOverride
      ? Picture(size: [60, 50], colour: [0, 160, 0]) : Picture(size: [40, 30], colour: [200, 0, 0])
  }

  private static func logo(_ isOverride: Bool) -> Picture {
    isOverride
      ? Picture(size: [50, 35], colour: [255, 200, 0]) : Picture(size: [70, 25], colour: [0, 0, 220])
  }

  private static func script(_ isOverride: Bool) -> String {
    """
    document.getElementById("words").textContent = "\(isOverride ? "the override's" : "the main bundle's") words";
    document.getElementById("box").style.background = "\(css(box(isOverride)))";
    """
  }

  private static func css(_ colour: Colour) -> String {
    "rgb(\(colour.map(String.init).joined(separator: ",")))"
  }

  private static func drawing(_ picture: Picture) -> String {
    """
    <svg xmlns="http://www.w3.org/2000/svg" width="\(picture.size[0])" height="\(picture.size[1])">
    <rect width="100%" height="100%" fill="\(css(picture.colour))"/>
    </svg>
    """
  }

  /// A 32-bit BMP: file header, image header, pixels.
  private static func bitmap(_ picture: Picture) -> [UInt8] {
    let (width, height) = (picture.size[0], picture.size[1])
    let pixel = picture.colour.reversed().map { UInt8($0) } + [255]
    let bytes = (0..<width * height).flatMap { _ in pixel }
    let numbers = [54 + bytes.count, 0, 54, 40, width, height, 1 | 32 << 16, 0, bytes.count, 0, 0, 0, 0]
    return [UInt8]("BM".utf8) + numbers.flatMap(littleEndian) + bytes
  }

  private static func littleEndian(_ number: Int) -> [UInt8] {
    (0..<4).map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) }
  }
}
