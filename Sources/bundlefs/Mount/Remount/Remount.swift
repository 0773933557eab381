import ControlClient
import Glibc
import Layers
import Posix
import Routing

/// `mount -o remount,…`, which changes the mount flags and the substitutions, and nothing else.
struct Remount {
  private let mountPoint: MountPoint
  private let options: [String]
  /// The new layers; nil if they stay.
  private let layers: LayersRequest?
  private let formerLayers: LayersRequest

  /// - Throws: if MAIN or an option is given that differs from the mount's and cannot be changed.
  init(_ arguments: MountArguments) throws(Failure) {
    mountPoint = try MountPoint(mounted: arguments.mountPoint)
    options = arguments.options.flags
    let status = try Failure.naming(mountPoint.path.shown) { [mountPoint] () throws(Errno) in
      JSONValue(try StatusClient.read(.json, at: mountPoint.path))
    }
    guard let status, let mounted = MountedLayers(status) else {
      throw .failed("\(mountPoint.path.shown): the daemon does not report its layers")
    }
    layers = try RemountedLayers(arguments, mountPoint, mounted).request()
    formerLayers = LayersRequest(substitutions: mounted.order.substitutions)
    try check(arguments, status, mounted)
  }

  private func check(
    _ arguments: MountArguments, _ status: JSONValue, _ mounted: MountedLayers
  ) throws(Failure) {
    guard let present = status["options"] else { return }
    // mount(8) gives the source in the mount table.
    if let main = mounted.layers.last, arguments.main.shown != present["fsname"]?.string,
      MountOptions.resolved(arguments.main) != main.laidPath.path
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
    guard let layers else { return try remount(flags) }
    do throws(Failure) { try change(layers, flags) } catch {
      try? remount(MountFlags(restoring: former))
      throw error
    }
  }

  /// Applies the flags and changes the layers: `ro` last, since the control file of a read-only mount takes no commands.
  private func change(_ layers: LayersRequest, _ flags: MountFlags) throws(Failure) {
    var writable = flags
    writable.isReadOnly = false
    try remount(writable)
    try layers.send(to: mountPoint)
    if !flags.isReadOnly { return }
    do throws(Failure) { try remount(flags) } catch {
      try? formerLayers.send(to: mountPoint)
      throw error
    }
  }

  /// How often `ro` is tried, with 10 ms between. The kernel refuses it while a file is open for writing or a removed one
  /// is still in use, and a change of the layers removes files.
  private static let attempts = 100

  /// - Throws: EBUSY if a file stays open for writing.
  private func remount(_ flags: MountFlags) throws(Failure) {
    for attempt in 1... {
      do throws(Errno) {
        return try withCName(mountPoint.path) { name throws(Errno) in
          try Mounts.remount(name, flags: flags.bits)
        }
      } catch {
        if error == .resourceBusy, attempt < Self.attempts {
          usleep(10_000)
          continue
        }
        let reason = error == .notPermitted ? "only root can remount" : "\(error)"
        throw .failed("\(mountPoint.path.shown): \(reason)")
      }
    }
  }
}
