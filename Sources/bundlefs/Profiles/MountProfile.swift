import Routing

/// Saves the layers and options of a mount as a profile, and loads one.
struct MountProfile {
  private let mountPoint: MountPoint
  private let status: JSONValue
  private let mounted: MountedLayers

  init(_ mountPoint: MountPoint) throws(Failure) {
    self.mountPoint = mountPoint
    (status, mounted) = try MountedLayers.asked(of: mountPoint)
  }

  func save(as name: ProfileName, replacing: Bool = true) throws(Failure) {
    try Profile(status, mounted).save(
      as: name, in: ProfileFolder(), from: mountPoint.path.shown, replacing: replacing)
  }

  struct Loaded {
    /// The substitutions until then.
    let former: [[UInt8]]
    let set: [[UInt8]]
    /// What else the profile has that a present mount cannot get.
    let note: String?
  }

  /// Switches the mount to the profile's layers, in one step.
  func load(_ name: ProfileName) throws(Failure) -> Loaded {
    let profile = try Profile(name, in: ProfileFolder())
    var set: [[UInt8]] = []
    let former = try mountPoint.changeLayers { order throws(Failure) in
      try order.set(profile.layers)
      set = order.substitutions
    }
    let others = differences(profile).joined(separator: ", ")
    let note = "only the layers were switched; other options of '\(name.shown)' need a new mount: \(others)"
    return Loaded(former: former, set: set, note: others.isEmpty ? nil : note)
  }

  private func differences(_ profile: Profile) -> [String] {
    let upper = profile.parsed.writable == .off ? nil : profile.layers.first.map(MountOptions.resolved)
    let presentUpper = mounted.isWritable ? mounted.layers.first?.path : nil
    let writable = upper == presentUpper ? [] : [Self.text("writable", presentUpper?.shown, upper?.shown)]
    let wanted = profile.parsed.shown.sorted { $0.key < $1.key }
    return writable
      + wanted.compactMap { name, value in
        guard name != "substitution", name != "writable", let present = status["options"]?[name]?.string,
          present != value,
          // The daemon does not know those of a mount that was upgraded.
          name != "routes" || !value.isEmpty
        else { return nil }
        return Self.text(name, present, value)
      }
  }

  private static func text(_ name: String, _ present: String?, _ wanted: String?) -> String {
    let shown = { (value: String?) in value.flatMap { $0.isEmpty ? nil : $0 } ?? "none" }
    return "\(name) (\(shown(wanted)) instead of \(shown(present)))"
  }
}
