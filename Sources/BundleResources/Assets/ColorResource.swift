import Routing

/// A colour of an asset catalog.
public struct ColorResource: Sendable, Hashable {
  /// A colour space, by its name in catalogs.
  public struct ColorSpace: RawRepresentable, Sendable, Hashable {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }

    /// sRGB: that of a colour for which the catalog names none.
    public static let sRGB = ColorSpace(rawValue: "srgb")
    /// sRGB with components beyond 0 to 1.
    public static let extendedSRGB = ColorSpace(rawValue: "extended-srgb")
    /// sRGB with linear components beyond 0 to 1.
    public static let extendedLinearSRGB = ColorSpace(rawValue: "extended-linear-srgb")
    /// Display P3.
    public static let displayP3 = ColorSpace(rawValue: "display-p3")
    /// Gray with a gamma of 2.2.
    public static let gray = ColorSpace(rawValue: "gray-gamma-22")
    /// Gray beyond 0 to 1.
    public static let extendedGray = ColorSpace(rawValue: "extended-gray")
  }

  /// The colour space.
  public let colorSpace: ColorSpace
  /// The red component, from 0 to 1; beyond that in extended colour spaces. Of a gray, all three are its brightness.
  public let red: Double
  /// The green component.
  public let green: Double
  /// The blue component.
  public let blue: Double
  /// The opacity, from 0 to 1.
  public let alpha: Double

  /// Creates a colour.
  public init(colorSpace: ColorSpace, red: Double, green: Double, blue: Double, alpha: Double) {
    self.colorSpace = colorSpace
    (self.red, self.green, self.blue, self.alpha) = (red, green, blue, alpha)
  }

  /// nil for one that is malformed, or a system's colour.
  init?(_ color: JSONValue) {
    guard let components = color["components"] else { return nil }
    func component(_ name: String) -> Double? { components[name].flatMap(Self.component) }
    let space = color["color-space"]?.string.map(ColorSpace.init) ?? .sRGB
    let alpha = component("alpha") ?? 1
    if let white = component("white") {
      self.init(colorSpace: space, red: white, green: white, blue: white, alpha: alpha)
    } else if let red = component("red"), let green = component("green"), let blue = component("blue") {
      self.init(colorSpace: space, red: red, green: green, blue: blue, alpha: alpha)
    } else {
      return nil
    }
  }

  /// A component is written as `0.5`, `0x80` or `128`.
  private static func component(_ value: JSONValue) -> Double? {
    switch value {
    case .number(let number): return number
    case .integer(let number): return number <= 1 ? Double(number) : Double(number) / 255
    case .string(let text):
      if text.hasPrefix("0x") { return UInt8(text.dropFirst(2), radix: 16).map { Double($0) / 255 } }
      guard let number = Double(text), number.isFinite else { return nil }
      return text.contains(".") ? number : number / 255
    default: return nil
    }
  }
}
