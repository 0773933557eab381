import Glibc
import Holder
import Layers
import Posix
import RemoteFiles
import Routing
import Volume

/// Records another stack of layers for the successor of this process.
final class StackRecorder: Sendable {
  private let plan: MountPlan
  private let stack: LayerStack
  private let survival: SurvivalMemory
  private let state = Locked(order: 10, State())

  private struct State {
    /// Whether the process is to hand over.
    var hasSwitched = false
    /// Archives stay registered for as long as they exist.
    var opened: [Layer] = []
  }

  /// - Parameter stack: of this process.
  init(_ plan: MountPlan, _ stack: LayerStack, _ survival: SurvivalMemory) {
    self.plan = plan
    self.stack = stack
    self.survival = survival
  }

  /// Whether the process is to hand over to one with other layers.
  var hasSwitched: Bool { state.withLock { $0.hasSwitched } }

  func wasMade(_ request: UInt64) -> Bool { survival.layerTable?.requests.contains(request) == true }

  /// Opens new substitutions and records the stack; does nothing if another change has just been recorded: the successor
  /// makes this one then.
  /// - Parameters:
  ///   - paths: absolute ones, top first, as `LaidPath.name`.
  ///   - request: the `unique` of the WRITE that asks for it.
  ///   - used: the IDs of the layers that nodes refer to.
  /// - Throws: an error that names the layer at fault.
  func make(_ paths: [[UInt8]], _ request: UInt64, _ used: Set<LayerID>) throws(RoutingError) {
    try state.withLock { state throws(RoutingError) in
      if state.hasSwitched { return }
      guard survival.state.initSize > 0, let present = survival.layerTable else {
        throw RoutingError(.notSupported, "the kernel cannot give the mount to another process (Linux 6.9)")
      }
      var change = StackSwitch(from: present, opener, survival)
      defer { change.undoUnlessRecorded() }
      try change.choose(paths)
      try change.record(request, stack, used)
      state.opened = change.opened
      state.hasSwitched = true
    }
  }

  /// Opens the folders that have taken the places of archives, and records the stack with them.
  /// - Parameter used: as of `make`.
  /// - Returns: whether there are any, so that the process is to hand over.
  func reopen(_ used: Set<LayerID>) throws(RoutingError) -> Bool {
    try state.withLock { state throws(RoutingError) in
      guard !state.hasSwitched, survival.state.initSize > 0, let present = survival.layerTable else {
        return false
      }
      var change = StackSwitch(from: present, opener, survival)
      defer { change.undoUnlessRecorded() }
      guard try change.chooseFolders() else { return false }
      try change.record(nil, stack, used)
      state.opened = change.opened
      state.hasSwitched = true
      return true
    }
  }

  /// Forgets retired layers to which no node refers any more.
  /// - Returns: false if that cannot be recorded, or the successor is to do it.
  func release(_ ids: Set<LayerID>) -> Bool {
    state.withLock { state in
      if state.hasSwitched { return false }
      guard var table = survival.layerTable else { return false }
      table.retired.removeAll { ids.contains($0.id) }
      // They are compared with the present ones right after a change.
      if table.former.contains(where: ids.contains) { table.former = [] }
      do throws(Errno) { try survival.write(table) } catch { return false }
      for id in ids { survival.removeRoot(id) }
      return true
    }
  }

  private var opener: LayerOpener { LayerOpener(plan, covered: nil, archives: survival.archives) }
}

/// A switch to another stack of layers. What it opens is closed again unless it is recorded.
private struct StackSwitch {
  private let present: LayerTable
  private let opener: LayerOpener
  private let survival: SurvivalMemory
  private var layers: [LayerTable.Entry] = []
  private var added: [LayerTable.Entry] = []
  private var isRecorded = false
  private(set) var opened: [Layer] = []

  init(from present: LayerTable, _ opener: LayerOpener, _ survival: SurvivalMemory) {
    self.present = present
    self.opener = opener
    self.survival = survival
  }

  private var plan: MountPlan { opener.plan }

  /// The layer that takes changes, which stays on top.
  private var upper: LayerTable.Entry? { plan.isWritable ? present.layers.first : nil }

  /// Finds the layers, and opens those that the mount does not have.
  mutating func choose(_ paths: [[UInt8]]) throws(RoutingError) {
    var paths = paths[...]
    if let upper {
      layers = [upper]
      if paths.first == upper.laidPath.name { paths.removeFirst() }
    }
    for path in paths { layers.append(try entry(path)) }
    layers += present.layers.suffix(1)
  }

  /// Keeps the layers, but for archives whose paths are folders by now.
  /// - Returns: whether there are any.
  mutating func chooseFolders() throws(RoutingError) -> Bool {
    for entry in present.layers {
      layers.append(entry.isArchiveReplacedByFolder ? try newEntry(entry.laidPath, nil, entry.path) : entry)
    }
    return !added.isEmpty
  }

  private mutating func entry(_ name: [UInt8]) throws(RoutingError) -> LayerTable.Entry {
    let given: LaidPath
    do throws(LaidPath.Fault) { given = try LaidPath(name: name) } catch {
      throw RoutingError(.malformed, "\(name.shown): \(error.reason)")
    }
    // Before a file system is asked, which may not answer.
    if let entry = try unused(given) { return entry }
    let (path, archive) = try resolved(given.path)
    let laid = LaidPath(path, atFolder: given.place)
    if let entry = try unused(laid) { return entry }
    return try newEntry(laid, archive, given.path)
  }

  private mutating func newEntry(
    _ laid: LaidPath, _ archive: ArchivePath?, _ given: [UInt8]
  ) throws(RoutingError) -> LayerTable.Entry {
    try check(laid.path, given)
    guard let id = LayerTable.freeID(among: present.all + added) else {
      throw RoutingError(
        .tooLong, "\(RemoteURL.redacted(given).shown): a mount has at most \(LayerTable.mostLayers) layers")
    }
    let entry = LayerTable.Entry(
      id: id, path: laid.path, archiveLength: archive?.archive.count ?? 0, place: laid.place)
    try open(entry, archive, given)
    added.append(entry)
    return entry
  }

  /// The present substitution with a path, unless it has its place already.
  /// - Throws: EINVAL for the one that takes changes.
  private func unused(_ laid: LaidPath) throws(RoutingError) -> LayerTable.Entry? {
    if laid.path == upper?.path {
      throw RoutingError(.malformed, "\(laid.path.shown) takes the changes, so it stays on top")
    }
    // The status, from which the layers are known, has URLs redacted.
    return present.layers.dropLast().first {
      ($0.laidPath == laid || $0.redactedPath == laid) && !layers.contains($0)
        && !$0.isArchiveReplacedByFolder
    }
  }

  private func resolved(_ given: [UInt8]) throws(RoutingError) -> (path: [UInt8], archive: ArchivePath?) {
    do throws(Errno) {
      guard let archive = ArchivePath(given) else { return (try realPath(given), nil) }
      if RemoteURL.isURL(given) { return (given, archive) }
      let outer = try realPath(archive.archive)
      let path = outer + given.dropFirst(archive.archive.count)
      return (path, ArchivePath(path, archiveLength: outer.count))
    } catch {
      if opener.mayBeMissing(error) { return (MountPoint.absolute(given), nil) }
      throw Self.error(error, given)
    }
  }

  /// - Throws: EINVAL for a layer in which the mount would find itself, or the changes that it makes.
  private func check(_ path: [UInt8], _ given: [UInt8]) throws(RoutingError) {
    let mountPoint = plan.mountPoint.path
    if !plan.isPrivate, let entry = MountTableEntry.containing(path), entry.isBundlefs,
      entry.mountPoint == mountPoint
    {
      throw RoutingError(.malformed, "\(RemoteURL.redacted(given).shown) is inside the mount itself")
    }
    if let upper, upper.path.isPath(inside: path) || path.isPath(inside: upper.path) {
      throw RoutingError(
        .malformed,
        "\(RemoteURL.redacted(given).shown) and \(upper.path.shown), which takes the changes, contain one another"
      )
    }
  }

  private mutating func open(
    _ entry: LayerTable.Entry, _ archive: ArchivePath?, _ given: [UInt8]
  ) throws(RoutingError) {
    if let fault = opener.folding.fault(at: entry.place) {
      throw RoutingError(.malformed, "\(RemoteURL.redacted(given).shown): \(fault)")
    }
    if let archive {
      do throws(ArchiveError) {
        opened.append(
          .archive(try opener.open(archive, index: entry.id.place, id: entry.id, at: entry.place)))
      } catch { throw Self.error(error, given) }
      return
    }
    let layer: DirectoryLayer
    do throws(Errno) {
      layer = try opener.directory(entry.path, at: entry.place, index: entry.id.place)
    } catch {
      throw Self.error(error, given)
    }
    if let fault = opener.folding.fault(of: layer) {
      throw RoutingError(.malformed, "\(RemoteURL.redacted(given).shown): \(fault)")
    }
    do throws(Errno) { try survival.recordRoot(of: .directory(layer), entry.id) } catch {
      throw Self.error(error, given)
    }
    if layer.isPrivateClone || survival.state.beneath >= 0 || plan.isPrivate { return }
    // What lies beneath the mount cannot be reached any more.
    if plan.mountPoint.path.isPath(inside: entry.path) {
      survival.removeRoot(entry.id)
      throw RoutingError(
        .malformed, "\(RemoteURL.redacted(given).shown) contains the mount point; choose a folder without it")
    }
  }

  private static func error(_ error: Errno, _ path: [UInt8]) -> RoutingError {
    let code: RouteErrno =
      switch error {
      case .noSuchFileOrDirectory: .noRoute
      case .notDirectory: .notDirectory
      case .permissionDenied: .forbidden
      case .notPermitted: .notPermitted
      default: .unreadable
      }
    return RoutingError(code, "\(RemoteURL.redacted(path).shown): \(LayerOpener.reason(error, path))")
  }

  private static func error(_ error: ArchiveError, _ path: [UInt8]) -> RoutingError {
    let code: RouteErrno =
      switch error {
      case .unreadable(.permissionDenied): .forbidden
      case .noFile, .folder, .noArchive, .fileForFolder: .notDirectory
      case .noFolder, .noInnerArchive: .noRoute
      default: .unreadable
      }
    return RoutingError(code, "\(RemoteURL.redacted(path).shown): \(error.message)")
  }

  /// - Parameters:
  ///   - request: the `unique` of the WRITE that asks for it; nil for none.
  ///   - stack: of this process.
  ///   - used: the IDs of the layers that nodes refer to.
  mutating func record(
    _ request: UInt64?, _ stack: LayerStack, _ used: Set<LayerID>
  ) throws(RoutingError) {
    var table = present
    table.layers = layers
    let gone = present.all.filter { !layers.contains($0) }
    // The present layers tell the successor what the change has done.
    let kept = gone.filter { used.contains($0.id) || present.layers.contains($0) }
    table.retired = kept
    table.former = present.layers.map(\.id)
    if let request { table.add(request: request) }
    do throws(Errno) {
      // A path may lead to another directory by now.
      for (layer, id) in zip(stack.layers, stack.ids) where layer.folder?.wasReopened == true {
        survival.removeRoot(id)
        try survival.recordRoot(of: layer, id)
      }
      try survival.write(table)
    } catch { throw RoutingError(.unreadable, "cannot record the layers: \(error)") }
    isRecorded = true
    survival.state.haveLayersChanged = 1
    for entry in gone where !kept.contains(entry) { survival.removeRoot(entry.id) }
  }

  func undoUnlessRecorded() {
    if isRecorded { return }
    for entry in added { survival.removeRoot(entry.id) }
  }
}

extension LayerTable.Entry {
  fileprivate var redactedPath: LaidPath { LaidPath(RemoteURL.redacted(path), atFolder: place) }

  /// Whether the path of an archive leads to a folder.
  fileprivate var isArchiveReplacedByFolder: Bool {
    guard archiveLength > 0, archiveLength == path.count else { return false }
    let status = try? Descriptor.open(path, [.pathOnly, .noFollow]).attributes()
    return status?.isDirectory == true
  }
}

extension [UInt8] {
  /// Whether the path is the folder's or lies below it; both are absolute and without symbolic links.
  func isPath(inside folder: [UInt8]) -> Bool {
    let slash = UInt8(ascii: "/")
    return self == folder || starts(with: folder.last == slash ? folder : folder + [slash])
  }
}
