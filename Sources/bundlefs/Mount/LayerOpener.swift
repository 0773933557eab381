import Glibc
import Holder
import Bundles
import Layers
import Posix
import RemoteFiles
import Volume

/// Opens the layers of a plan, or those that a predecessor has recorded.
struct LayerOpener {
  let plan: MountPlan
  let covered: CoveredMountPoint?
  private let contents: ContentCache
  private var foldsNames: Bool { plan.arguments.options.foldsNames }
  private let hidden: HiddenNames?

  init(_ plan: MountPlan, covered: CoveredMountPoint?, archives: ArchiveRegistry? = nil) {
    self.plan = plan
    hidden = plan.arguments.options.hidden
    self.covered = covered
    contents = ContentCache(
      budget: plan.arguments.options.cacheSize ?? MemoryLimit.share(atMost: ContentCache.defaultBudget),
      passwords: plan.passwords, registry: archives, remote: plan.remote,
      owners: plan.arguments.options.archiveOwners)
  }

  /// - Returns: the layers; the one of them that takes changes, if any; and the cache of their archives' contents, if
  ///   there are any.
  func open() throws(Failure) -> (LayerStack, UpperLayer?, ContentCache?) {
    var layers: [Layer] = []
    for layer in plan.layers {
      let isMain = layers.count == plan.layers.count - 1
      let role = role(of: layers.count, isMain: isMain)
      layers.append(
        try open(layer, as: "\(role) \(layer.given.shown)", index: layers.count, mayBeMissing: !isMain))
    }
    return try opened(LayerStack(layers: layers), for: .mount)
  }

  /// What a message calls a layer.
  private func role(of index: Int, isMain: Bool) -> String {
    if plan.arguments.options.overlay.isOn { return plan.isWritable && index == 0 ? "upperdir" : "lowerdir" }
    return isMain ? "MAIN" : "substitution"
  }

  /// The layers of a predecessor. Directories are not opened again, since their paths may not answer.
  /// - Parameter memory: with the roots.
  func open(_ table: LayerTable, _ memory: SurvivalMemory) throws(Failure) -> (
    LayerStack, UpperLayer?, ContentCache?
  ) {
    var (layers, retired, ids): ([Layer], [Layer], [LayerID]) = ([], [], [])
    for entry in table.layers {
      layers.append(try reopen(entry, index: layers.count, memory))
      ids.append(entry.id)
    }
    for entry in table.retired {
      // What was read from it can go on; without it such reads fail.
      let index = layers.count + retired.count
      guard let layer = try? reopen(entry, index: index, memory) else { continue }
      retired.append(layer)
      ids.append(entry.id)
    }
    let former = table.former.compactMap { ids.firstIndex(of: $0) }
    let hasFormer = memory.state.haveLayersChanged != 0 && !former.isEmpty
    return try opened(
      LayerStack(layers: layers, retired: retired, ids: ids, former: hasFormer ? former : nil),
      for: .successor)
  }

  private func opened(
    _ stack: LayerStack, for writer: UpperLayer.Writer
  ) throws(Failure) -> (LayerStack, UpperLayer?, ContentCache?) {
    let options = plan.arguments.options
    if options.mergesTables { stack.mergeTables(forDevice: options.resources.lookup.idiom?.device) }
    let hasArchive = stack.all.contains { $0.layer.archive != nil }
    let upper = try upper(stack.layers, writer)
    if writer == .mount, options.mergesTables, let upper, !upper.canMarkTables {
      upper.close()
      throw .failed(
        "writable: \(upper.layer.path.shown) cannot have extended attributes, which 'writable' with 'strings=merge' needs"
      )
    }
    if writer == .mount, let warning = LayerTrust(plan).warning(about: stack.layers) {
      Terminal.printError("warning: \(warning)")
    }
    return (stack, upper, hasArchive ? contents : nil)
  }

  private func open(
    _ layer: MountPlan.LayerPath, as role: String, index: Int, mayBeMissing: Bool
  ) throws(Failure) -> Layer {
    if let archive = layer.archive {
      let opened = try reopen(archive, as: role, index: index, at: layer.place)
      if let reason = opened.archive?.emptinessReason { Terminal.printError("\(role): \(reason)") }
      return opened
    }
    let isUpper = plan.isWritable && index == 0
    let opened: DirectoryLayer
    do throws(Errno) {
      opened = try directory(
        layer.path, at: layer.place, index: index, isWritable: isUpper,
        mayBeMissing: mayBeMissing && !isUpper)
    } catch {
      let hint = [.noSuchFileOrDirectory, .notDirectory].contains(error) ? plan.separatorHint : nil
      let reason = Self.reason(error, layer.path, mayBeMissing: hint == nil && mayBeMissing && !isUpper)
      throw .failed("\(role): \(reason)" + (hint.map { "; \($0)" } ?? ""))
    }
    if let fault = folding.fault(of: opened) { throw .failed("\(role): \(fault)") }
    return .directory(opened)
  }

  /// What the mount's options say of layers that fold names.
  var folding: FoldedLayer { FoldedLayer(plan.arguments.options) }

  /// A layer that is a directory, or may come later as one.
  /// - Parameter place: the folder of the mount at which it is laid.
  /// - Throws: as `realpath(3)` and `open(2)`.
  func directory(
    _ path: [UInt8], at place: [[UInt8]], index: Int, isWritable: Bool = false, mayBeMissing: Bool = true
  ) throws(Errno) -> DirectoryLayer {
    do throws(Errno) {
      return try DirectoryLayer(
        path: try realPath(path), index: index, covered: covered, isWritable: isWritable,
        workDirectory: isWritable ? try workDirectory(for: try realPath(path)) : nil, foldsNames: foldsNames,
        isShared: plan.arguments.isShared, hidden: hidden, at: place)
    } catch {
      guard mayBeMissing, self.mayBeMissing(error),
        let absent = try? DirectoryLayer(
          absent: MountPoint.absolute(path), index: index, covered: covered, foldsNames: foldsNames,
          isShared: plan.arguments.isShared, hidden: hidden, at: place)
      else { throw error }
      return absent
    }
  }

  /// The directory that the option `workdir` names, as seen from the layer that takes the changes; nil without it.
  /// - Throws: EINVAL if one of them contains the other.
  private func workDirectory(for layer: [UInt8]) throws(Errno) -> WorkDirectory? {
    guard let path = plan.workDirectory else { return nil }
    let identity = try Descriptor.open(path, [.pathOnly, .directory]).attributes().identity
    guard let work = WorkDirectory(path, for: layer, identity: identity) else { throw .invalidArgument }
    return work
  }

  /// Whether a substitution that cannot be opened may come later.
  func mayBeMissing(_ error: Errno) -> Bool {
    plan.arguments.options.allowsMissing && error == .noSuchFileOrDirectory
  }

  private func reopen(
    _ entry: LayerTable.Entry, index: Int, _ memory: SurvivalMemory
  ) throws(Failure) -> Layer {
    let record = memory.root(entry.id)
    if entry.archiveLength > 0 {
      let archive = ArchivePath(entry.path, archiveLength: entry.archiveLength)
      return try reopen(
        archive, as: RemoteURL.redacted(entry.path).shown, index: index, id: entry.id, at: entry.place)
    }
    guard let root = record.root else { throw .failed("\(entry.path.shown): its root is unknown") }
    return .directory(
      DirectoryLayer(
        path: entry.path, index: index, covered: covered, root: root,
        file: try Failure.naming(entry.path.shown) { () throws(Errno) in
          try Descriptor.duplicate(of: record.file)
        },
        isWritable: plan.isWritable && index == 0,
        workDirectory: index == 0 ? plan.workDirectory.flatMap { WorkDirectory($0, for: entry.path) } : nil,
        foldsNames: foldsNames,
        isShared: plan.arguments.isShared, hidden: hidden, at: entry.place))
  }

  private func reopen(
    _ archive: ArchivePath, as role: String, index: Int, id: LayerID? = nil, at place: [[UInt8]]
  ) throws(Failure) -> Layer {
    do throws(ArchiveError) { return .archive(try open(archive, index: index, id: id, at: place)) } catch {
      throw .failed("\(role): \(error.message)")
    }
  }

  /// - Parameters:
  ///   - id: as of `ArchiveLayer.init`.
  ///   - place: as of `ArchiveLayer.init`.
  func open(
    _ archive: ArchivePath, index: Int, id: LayerID?, at place: [[UInt8]]
  ) throws(ArchiveError) -> ArchiveLayer {
    try archive.open(
      index: index, id: id, plan.arguments.options.archiveEncoding, contents, foldsNames: foldsNames,
      hidden: hidden, at: place)
  }

  private func upper(_ layers: [Layer], _ writer: UpperLayer.Writer) throws(Failure) -> UpperLayer? {
    guard plan.isWritable, let folder = layers.first?.folder else { return nil }
    let trust = LayerTrust(plan)
    // A successor continues with a mount that others may have been given rights to since.
    if writer == .mount { try trust.check(upper: folder) }
    do throws(Errno) {
      return try UpperLayer(
        folder, for: writer, trustsOthers: trust.trustsUpper, whiteouts: plan.arguments.options.whiteouts
      ) {
        VisibleMount.isWritten(folder.path)
      }
    } catch {
      if error == .notSupported, plan.arguments.options.whiteouts == .devices {
        throw .failed(
          "writable: \(folder.path.shown) cannot have devices 0:0, or this user cannot make them; use "
            + "'whiteouts=markers'")
      }
      if error == .resourceBusy {
        throw .failed(
          "writable: \(folder.path.shown) is the writable layer of \(Self.otherWriter(folder.path))")
      }
      if let path = plan.workDirectory, error == .crossDeviceLink || error == .noSuchFileOrDirectory {
        let reason = error == .crossDeviceLink ? "on another mount than \(folder.path.shown)" : "\(error)"
        throw .failed("workdir: \(path.shown): \(reason)")
      }
      if let fault = UpperLayer.workFolderFault(in: folder) {
        throw .failed(
          "writable: " + fault.message(plan.workDirectory ?? folder.path, remedy: LayerTrust.workFolderRemedy)
        )
      }
      throw .failed("writable: \(folder.path.shown) cannot be written to: \(error); use 'writable=DIR'")
    }
  }

  /// The mount that writes to a folder, and what to do about it.
  private static func otherWriter(_ folder: [UInt8]) -> String {
    guard let keeper = VisibleMount.keeper(ofWriterOf: folder) else {
      return "another mount; use 'writable=DIR'"
    }
    return "another mount, which is unmounted, but the mount namespace of process \(keeper.process) "
      + "(\(keeper.command)) has a copy of it; end that process, or use 'writable=DIR'"
  }

  /// Why a path is not a layer.
  /// - Parameter mayBeMissing: whether an option would allow that it is missing.
  static func reason(_ error: Errno, _ path: [UInt8], mayBeMissing: Bool = false) -> String {
    switch error {
    case .noSuchFileOrDirectory:
      "no such directory or archive" + (mayBeMissing ? "; with '-o missing=empty' it may come later" : "")
    case .notDirectory: "neither a directory nor an archive"
    case .socketNotConnected: "the mount there is dead; remove it with 'fusermount3 -u \(path.shown)'"
    default: "\(error)"
    }
  }
}
