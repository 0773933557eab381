import ControlClient
import Glibc
import Posix
import Routing

/// `mount -o remount,…`, which changes the mount flags and the substitutions, and nothing else.
struct Remount {
  private let mountPoint: MountPoint
  private let options: [String]
  /// The new layers; nil if they stay.
  private let layers: LayersRequest?

  /// - Throws: if MAIN or an option is given that differs from the mount's and cannot be changed.
  init(_ arguments: MountArguments) throws(Failure) {
    mountPoint = try MountPoint(mounted: arguments.mountPoint)
    options = arguments.options.flags
    let status = try Failure.naming(mountPoint.path.shown) { [mountPoint] () throws(Errno) in
      JSONValue(try StatusClient.read(.json, at: mountPoint.path))
    }
    guard let status, let mounted = MountedLayers(status) else {
      throw .failed("\(mountPoint.path.shown): the daemon does not tell its layers")
    }
    layers = try RemountedLayers(arguments, mountPoint, mounted).request()
    try check(arguments, status, mounted)
  }

  private func check(
    _ arguments: MountArguments, _ status: JSONValue, _ mounted: MountedLayers
  ) throws(Failure) {
    guard let present = status["options"] else { return }
    // mount(8) gives the source in the mount table.
    if let main = mounted.layers.last, arguments.main.shown != present["fsname"]?.string,
      MountOptions.resolved(arguments.main) != main.path
    {
      throw fixed("MAIN '\(arguments.main.shown)'", "'\(main.shown)'")
    }
    for (name, value) in Self.requested(arguments) where present[name]?.string != value {
      throw fixed(Self.described(name, value), Self.described(name, present[name]?.string ?? ""))
    }
  }

  private func fixed(_ requested: String, _ present: String) -> Failure {
    .failed(
      "\(mountPoint.path.shown): remounting cannot change \(requested); it is \(present); "
        + "unmount it and mount it again")
  }

  /// The options that are given and cannot be changed, with the values in which the daemon shows them.
  private static func requested(_ arguments: MountArguments) -> [(String, String)] {
    let shown = arguments.options.shown
    let names = arguments.options.names.filter { $0 != "substitution" }
    var requested = names.compactMap { name in shown[name].map { (name, $0) } }
    if let name = arguments.options.fsname { requested.append(("fsname", name.shown)) }
    return requested
  }

  private static func described(_ name: String, _ value: String) -> String {
    value.isEmpty ? "'\(name)' (not set)" : "'\(name)=\(value)'"
  }

  /// Changes both the flags and the layers, or nothing.
  func run() throws(Failure) {
    let lock = MountLock(for: mountPoint)
    defer { lock?.release() }
    // Users other than root can change the layers alone.
    if let layers, options.isEmpty { return try layers.send(to: mountPoint) }
    let former = try Failure.naming(mountPoint.path.shown) { () throws(Errno) in
      try mountPoint.open([.pathOnly]).mountFlags()
    }
    var flags = MountFlags(of: former)
    for option in options { flags.apply(option) }
    if let layers { try change(layers, flags, from: MountFlags(restoring: former)) }
    if layers == nil || flags.isReadOnly { try remount(flags) }
  }

  /// Applies the flags but `ro`, since the control file of a read-only mount takes no commands, and changes the layers.
  private func change(
    _ layers: LayersRequest, _ flags: MountFlags, from former: MountFlags
  ) throws(Failure) {
    var writable = flags
    writable.isReadOnly = false
    try remount(writable)
    do throws(Failure) { try layers.send(to: mountPoint) } catch {
      try? remount(former)
      throw error
    }
  }

  private func remount(_ flags: MountFlags) throws(Failure) {
    do throws(Errno) {
      try withCName(mountPoint.path) { name throws(Errno) in try Mounts.remount(name, flags: flags.bits) }
    } catch {
      let reason = error == .notPermitted ? "only root can remount" : "\(error)"
      throw .failed("\(mountPoint.path.shown): \(reason)")
    }
  }
}
