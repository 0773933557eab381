import ControlClient
import Glibc
import Layers
import Posix
import Routing

/// A bundlefs mount in a mount namespace that the caller may inspect.
struct VisibleMount {
  /// A process in another mount namespace: the one with the lowest ID.
  struct Owner: Equatable {
    let process: pid_t
    /// The command's name, at most 15 bytes, as the process itself chose it.
    let command: String
  }

  let entry: MountTableEntry
  /// nil in the caller's own namespace.
  let owner: Owner?

  /// The path by which the caller reaches the mount's root.
  var path: [UInt8] {
    guard let owner else { return entry.mountPoint }
    return Array("/proc/\(owner.process)/root".utf8) + entry.mountPoint
  }

  /// Those of the own namespace, then those that only other namespaces have. What may not be read is left out.
  static func all() -> [VisibleMount] {
    let own = MountTableEntry.all().filter(\.isBundlefs)
    var devices = Set(own.map(\.device))
    var found = own.map { VisibleMount(entry: $0, owner: nil) }
    var namespaces = Set([namespace(of: "self")])
    for process in processes() {
      guard let namespace = namespace(of: "\(process)"), namespaces.insert(namespace).inserted else {
        continue
      }
      // Namespaces have copies of each other's mounts.
      let entries = MountTableEntry.all(of: process).filter { $0.isBundlefs && !devices.contains($0.device) }
      if entries.isEmpty { continue }
      devices.formUnion(entries.map(\.device))
      let owner = Owner(process: process, command: command(of: process))
      found += entries.map { VisibleMount(entry: $0, owner: owner) }
    }
    return found
  }

  /// Whether a mount that answers takes its changes in a folder, and is not just a copy that another namespace keeps.
  static func isWritten(_ folder: [UInt8]) -> Bool {
    writers(of: folder).contains { mount, status in !mount.isOnlyCopied(status) }
  }

  /// A process in a namespace that keeps a copy of a mount that writes to a folder and is unmounted where it was mounted.
  static func keeper(ofWriterOf folder: [UInt8]) -> Owner? {
    writers(of: folder).first { mount, status in mount.isOnlyCopied(status) }?.mount.owner
  }

  /// The mounts that take their changes in a folder and answer, with their statuses.
  private static func writers(of folder: [UInt8]) -> [(mount: VisibleMount, status: JSONValue)] {
    let path = MountOptions.resolved(folder)
    let mounts = all()
    return zip(mounts, MountInspection.all(of: mounts)).compactMap { mount, inspection in
      guard let status = inspection.status, let layers = MountedLayers(status), layers.isWritable,
        layers.layers[0].laidPath.resolved.path == path
      else { return nil }
      return (mount, status)
    }
  }

  /// Whether other namespaces have it, but not that of the process that serves it: it was unmounted there, and ends with
  /// its last copy.
  private func isOnlyCopied(_ status: JSONValue) -> Bool {
    guard owner != nil, let process = status.servingProcess else { return false }
    let mounts = MountTableEntry.all(of: process)
    return !mounts.isEmpty && !mounts.contains { $0.device == entry.device }
  }

  /// In ascending order.
  private static func processes() -> [pid_t] {
    var found: [pid_t] = []
    guard let directory = try? Descriptor.open("/proc", [.read, .directory]) else { return [] }
    try? directory.forEachEntry { entry in
      if let process = pid_t(String(cString: entry.name)) { found.append(process) }
    }
    return found.sorted()
  }

  /// `mnt:[NUMBER]`; nil if it may not be read.
  private static func namespace(of process: String) -> [UInt8]? {
    try? Descriptor.open(Array("/proc/\(process)/ns/mnt".utf8), [.pathOnly, .noFollow]).linkTarget()
  }

  private static func command(of process: pid_t) -> String {
    let name = try? Descriptor.open(Array("/proc/\(process)/comm".utf8), [.read]).readAll()
    return (name ?? []).shown.filter { $0 != "\n" }
  }
}
