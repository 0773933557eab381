import Posix

/// The substitutions that a remount asks for.
struct RemountedLayers {
  /// The values of the options `substitution=`, each top first.
  private let requested: [[[UInt8]]]
  private let mounted: MountedLayers

  init(_ arguments: MountArguments, _ mountPoint: MountPoint, _ mounted: MountedLayers) {
    var lists = arguments.options.substitutionLists
    if arguments.isHelper, !lists.isEmpty {
      let entry = FileSystemTableEntry.all().last { Self.isPlace(of: $0, mountPoint) }
      lists = Self.withoutMerged(lists, entry?.substitutionLists ?? [])
    }
    self.requested = lists
    self.mounted = mounted
  }

  private static func isPlace(of entry: FileSystemTableEntry, _ mountPoint: MountPoint) -> Bool {
    entry.mountPoint == mountPoint.path || (try? realPath(entry.mountPoint)) == mountPoint.path
  }

  /// Leaves out those of the fstab line, which mount(8) puts before those of its command line: the latter replace them.
  /// Alone they count, so that `mount -o remount MOUNTPOINT` applies a line that was edited.
  static func withoutMerged(_ lists: [[[UInt8]]], _ line: [[[UInt8]]]) -> [[[UInt8]]] {
    let isMerged = lists.count > line.count && lists.starts(with: line)
    return isMerged ? Array(lists.dropFirst(line.count)) : lists
  }

  /// - Returns: nil if the layers stay as they are.
  func request() throws(Failure) -> LayersRequest? {
    if requested.isEmpty { return nil }
    var order = mounted.order
    let present = order.substitutions
    try order.set(Array(requested.joined()))
    return order.substitutions == present ? nil : LayersRequest(substitutions: order.substitutions)
  }
}
