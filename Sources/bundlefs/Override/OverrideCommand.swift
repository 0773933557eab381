import Glibc
import Layers
import Posix
import Routing

/// `bundlefs override MOUNTPOINT PATH…`: copies what the mount shows to its top layer, ready to be edited.
struct OverrideCommand {
  private let mountPoint: MountPoint
  private let given: [[UInt8]]

  init(_ arguments: [[UInt8]]) throws(Failure) {
    if let option = arguments.first(where: { $0.starts(with: "--".utf8) }) {
      throw .unknownOption(option.shown, of: "override")
    }
    guard let point = arguments.first, arguments.count > 1 else {
      throw .usage("'override' needs a MOUNTPOINT and at least one PATH")
    }
    mountPoint = try MountPoint(mounted: point)
    given = Array(arguments.dropFirst())
  }

  /// - Returns: the exit status: 1 if something could not be copied.
  func run() throws(Failure) -> CInt {
    let layer = try TopLayer(of: mountPoint)
    defer { layer.finish() }
    let paths = try layer.components(of: given, "override")
    let mount = try layer.view()
    var status: CInt = 0
    for path in paths where !copy(path, of: mount, to: layer) { status = 1 }
    return status
  }

  /// - Returns: false if something could not be copied.
  private func copy(_ path: [[UInt8]], of mount: DirectoryLayer, to layer: TopLayer) -> Bool {
    let progress = Locked(ProgressBar(title: "copying:"))
    var copy = TreeCopy(of: mount, to: layer.upper, excluding: layer.reserved) { counts, bytes in
      let size = bytes > 1 << 20 ? ", \(bytes >> 20) MiB of the next one" : ""
      progress.withLock { $0.show("\(counts.copied + counts.present) files\(size)") }
    }
    var faults: [TreeCopy.Fault] = []
    do throws(TreeCopy.Fault) { try copy.copy(path) } catch { faults.append(error) }
    progress.withLock { $0.end() }
    faults = copy.faults + faults
    if faults.isEmpty || copy.counts.copied > 0 { report(path, copy.counts, layer) }
    for fault in faults { Terminal.printError("\(shown(fault.path)): \(Self.reason(fault.error))") }
    return faults.isEmpty
  }

  private func report(_ path: [[UInt8]], _ counts: TreeCopy.Counts, _ layer: TopLayer) {
    let copy = (try? layer.upper.layer.root.spelled(path)) ?? path
    let target = (layer.path + (copy.isEmpty ? "" : "/\(shown(copy))")).escapingControls
    let title = shown(path).escapingControls
    switch (counts.copied, counts.present) {
    case (1, 0): Terminal.print("\(title): copied to \(target)")
    case (0, 1): Terminal.print("\(title): already in \(target)")
    default:
      Terminal.print("\(title): copied \(counts.copied) files to \(target), had \(counts.present) already")
    }
  }

  /// Why something could not be copied.
  static func reason(_ error: Errno) -> String {
    switch error {
    case .tooManySymbolicLinkLevels: "a symbolic link, which is not followed; name the file that it leads to"
    case .crossDeviceLink: "another file system is mounted there"
    default: "\(error)"
    }
  }
}
