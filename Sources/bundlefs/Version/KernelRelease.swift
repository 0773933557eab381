/// The first two numbers of a kernel's release, as uname(2) names it: `6.18.44-amd64`.
struct KernelRelease: Comparable, CustomStringConvertible, Sendable {
  let major: Int
  let minor: Int

  init(major: Int, minor: Int) {
    self.major = major
    self.minor = minor
  }

  /// - Returns: nil if the name does not begin with two numbers.
  init?(_ name: String) {
    let numbers = name.split(separator: ".", maxSplits: 2).prefix(2).map {
      $0.prefix { $0.isASCII && $0.isNumber }
    }
    guard numbers.count == 2, let major = Int(numbers[0]), let minor = Int(numbers[1]) else { return nil }
    self.init(major: major, minor: minor)
  }

  static func < (one: KernelRelease, other: KernelRelease) -> Bool {
    (one.major, one.minor) < (other.major, other.minor)
  }

  var description: String { "\(major).\(minor)" }
}
