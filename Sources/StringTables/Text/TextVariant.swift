import PropertyLists

/// For which device, and in which width, texts are wanted.
public struct TextVariant: Sendable, Hashable {
  /// The names of devices, best first.
  private let devices: [String]
  private let width: Int?

  /// - Parameters:
  ///   - device: the name of a device, as in catalogs: `iphone`, `ipad`, `mac`; nil for none. Texts for all others follow, and
  ///     then, in an order that does not depend on the file, those for one other device.
  ///   - width: the width for which texts are chosen, in the unit of the tables; nil for the widest text.
  public init(device: String? = nil, width: Int? = nil) {
    devices =
      [device].compactMap { $0 }
      + ["other", "mac", "iphone", "ipad", "ipod", "appletv", "applewatch", "applevision"]
    self.width = width
  }

  /// The texts for devices, best first.
  func devices(in choices: PropertyListDictionary) -> some Sequence<PropertyListValue> {
    devices.lazy.compactMap { choices[$0] }
  }

  /// The texts for widths, best first: the widest that fits, then narrower ones, then wider ones.
  func widths(in choices: PropertyListDictionary) -> some Sequence<PropertyListValue> {
    let widths = choices.members.compactMap { member in Int(member.key).map { ($0, member.value) } }
      .sorted { $0.0 < $1.0 }
    let fitting = widths.prefix { $0.0 <= width ?? .max }
    return (fitting.reversed() + widths.dropFirst(fitting.count)).map(\.1)
  }
}
