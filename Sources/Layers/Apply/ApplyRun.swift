import Posix

/// Carries out a plan: first all goes into the target, while the top layer still hides it; then the top layer is emptied. So the
/// mount shows the same at each moment, and a run that was interrupted can be repeated.
public struct ApplyRun {
  /// Where it has failed.
  public struct Fault: Error {
    /// The path in the mount.
    public let path: [[UInt8]]
    public let error: Errno
  }

  /// A file of the target that further hard links can be made to.
  private struct Link {
    let step: Int
    let identity: FileIdentity
    /// The state of the top layer's file when it was copied.
    let original: FileStatus
  }

  let source: UpperLayer
  let target: UpperLayer
  let plan: ApplyPlan
  /// Whether layers lie below the target.
  private let hasBelow: Bool
  /// Is passed the number of steps done, of all, and the bytes of the file that is being copied.
  let progress: (Int, Int) -> Void
  private var sources: ApplyDirectories
  private var targets: ApplyDirectories
  private var links: [FileIdentity: Link] = [:]
  /// Directories of the target whose entries have changed.
  private var changed: Set<Int> = []
  /// Directories of the target whose entries may not be on disk: what is in the top layer's stays.
  private(set) var unsynchronized: Set<Int> = []
  /// The files of the top layer as they were copied.
  var copied: [Int: FileStatus] = [:]
  /// The steps that have failed, and the opaque directories around them: they stay in the top layer.
  var failed: Set<Int> = []

  /// What has failed so far.
  public internal(set) var faults: [Fault] = []

  /// - Parameters:
  ///   - source: the top layer.
  ///   - target: the layer below that gets its entries.
  ///   - hasBelow: whether layers lie below the target.
  ///   - progress: is passed the number of steps done, and the bytes so far of the file that is being copied.
  public init(
    _ plan: ApplyPlan, from source: UpperLayer, to target: UpperLayer, hasBelow: Bool,
    progress: @escaping (Int, Int) -> Void
  ) {
    (self.plan, self.source, self.target) = (plan, source, target)
    (self.hasBelow, self.progress) = (hasBelow, progress)
    sources = ApplyDirectories(plan, source.layer.root) { $0.name }
    targets = ApplyDirectories(plan, target.layer.root) { $0.targetName }
  }

  // MARK: - Writing

  /// Writes to the target. The top layer stays as it is.
  /// - Throws: what means that the target takes no more.
  public mutating func write() throws(Fault) {
    for index in plan.steps.indices where isToBeWritten(index) {
      progress(index, 0)
      do throws(Errno) { try write(index) } catch {
        if error.meansFullDisk || error == .readOnlyFileSystem || error == .tooManyOpenFiles {
          throw Fault(path: plan.path(of: index), error: error)
        }
        fail(index, error)
      }
    }
    for index in plan.steps.indices.reversed() where plan.steps[index].isDirectory { finish(index) }
  }

  /// What a directory of the target lacks could not be made: neither can what is in it.
  private mutating func isToBeWritten(_ index: Int) -> Bool {
    let step = plan.steps[index]
    if index > 0, failed.contains(step.parent), !plan.steps[step.parent].isOpaque || !isMade(step.parent) {
      failed.insert(index)
      return false
    }
    return step.action != .keep
  }

  private mutating func isMade(_ index: Int) -> Bool { (try? targets.directory(of: index)) != nil }

  mutating func fail(_ index: Int, _ error: Errno) {
    faults.append(Fault(path: plan.path(of: index), error: error))
    failed.insert(index)
    for above in plan.ancestors(of: index) where plan.steps[above].isOpaque { failed.insert(above) }
  }

  private mutating func write(_ index: Int) throws(Errno) {
    let step = plan.steps[index]
    // Whether or not this run changes it: one that was interrupted may have, and did not wait for the disk.
    changed.insert(step.parent)
    if step.isDirectory, step.action != .merge || step.becomesOpaque { changed.insert(index) }
    if index == 0 {
      if step.becomesOpaque { try makeOpaque(target.layer.root) }
      return
    }
    let parent = try targets.directory(of: step.parent)
    try withCName(step.targetName) { name throws(Errno) in
      switch (step.source, step.action) {
      case (.directory, _): try writeDirectory(index, name, in: parent)
      case (.file(let status), _): try writeFile(index, status, name, in: parent)
      case (_, .remove):
        guard try stillHides(index) else { throw .staleFileHandle }
        try refuseUnplanned(step, name, in: parent)
        try target.remove(name, in: parent, leavesWhiteout: step.leavesWhiteout)
      default: break
      }
    }
  }

  /// Whether the top layer still hides what the step removes from the target: it can have been reverted since the plan was
  /// made.
  private mutating func stillHides(_ index: Int) throws(Errno) -> Bool {
    let step = plan.steps[index]
    let directory = try sources.directory(of: step.parent)
    if case .whiteout = step.source {
      return try withCName(step.name) { name throws(Errno) in
        switch try directory.findExact(name, isLikelyDirectory: false) {
        case .whiteout: return true
        case .nothing: return try directory.hasWhiteoutMarker(name, length: step.name.count)
        case .file, .directory: return false
        }
      }
    }
    for opaque in plan.ancestors(of: index) where plan.steps[opaque].isOpaque {
      if try sources.directory(of: opaque).isOpaque() { return true }
      if opaque > 0, try hasMarker(opaque) { return true }
    }
    return false
  }

  /// Whether a directory of the top layer has a whiteout beside it, which makes it opaque.
  private mutating func hasMarker(_ index: Int) throws(Errno) -> Bool {
    let step = plan.steps[index]
    let parent = try sources.directory(of: step.parent)
    return try withCName(step.name) { name throws(Errno) in
      try parent.hasWhiteoutMarker(name, length: step.name.count)
    }
  }

  /// - Throws: ESTALE for a directory with entries that the plan does not count, which the user has not seen.
  private func refuseUnplanned(
    _ step: ApplyPlan.Step, _ name: CName, in parent: LayerDirectory
  ) throws(Errno) {
    guard step.count == 0,
      case .directory(let directory, _) = try parent.findExact(name, isLikelyDirectory: false)
    else { return }
    if try !directory.names().isEmpty { throw .staleFileHandle }
  }

  private mutating func writeDirectory(
    _ index: Int, _ name: CName, in parent: LayerDirectory
  ) throws(Errno) {
    let step = plan.steps[index]
    if case .directory(let present, _) = try parent.findExact(name, isLikelyDirectory: true) {
      if step.becomesOpaque { try makeOpaque(present) }
      return
    }
    let attributes = try attributes(of: sources.directory(of: index))
    try target.replace(name, in: parent, byDirectoryWith: attributes, isOpaque: step.becomesOpaque)
  }

  private func makeOpaque(_ directory: LayerDirectory) throws(Errno) {
    if try directory.isOpaque() { return }
    try directory.withDescriptor { directory throws(Errno) in
      try directory.keepingTimes { () throws(Errno) in
        try directory.unlocking(".", relocks: true) { () throws(Errno) in
          try target.whiteouts.makeOpaque(directory)
        }
      }
    }
  }

  private func attributes(of directory: LayerDirectory) throws(Errno) -> CopiedAttributes {
    let attributes = try CopiedAttributes(of: directory)
    return hasBelow ? attributes : attributes.withoutTimeMark
  }

  // MARK: - Files

  private mutating func writeFile(
    _ index: Int, _ planned: FileStatus, _ name: CName, in parent: LayerDirectory
  ) throws(Errno) {
    let step = plan.steps[index]
    let source = try sources.directory(of: step.parent)
    try withCName(step.name) { original throws(Errno) in
      let status = try source.attributes(of: original, identity: planned.identity)
      copied[index] = status
      try refuseUnplanned(step, name, in: parent)
      if try link(index, status, name, in: parent) { return }
      var present = try target.copyPresent(of: original, status, in: source, name, parent)
      if present == nil {
        present = try copy(index, original, status, in: source, to: name, in: parent)
      }
      guard let identity = present else { return }
      if status.links > 1 {
        links[status.identity] = Link(step: index, identity: identity, original: status)
      }
    }
  }

  private func copy(
    _ index: Int, _ original: CName, _ status: FileStatus, in source: LayerDirectory, to name: CName,
    in parent: LayerDirectory
  ) throws(Errno) -> FileIdentity {
    var bytes = 0
    let progress = progress
    return try target.replace(
      name, in: parent, byCopyOf: original, in: source, identity: status.identity
    ) {
      bytes += $0
      progress(index, bytes)
    }
  }

  /// Makes a hard link to the copy of another name of the same file.
  /// - Returns: false if there is none, or none can be made.
  private mutating func link(
    _ index: Int, _ status: FileStatus, _ name: CName, in parent: LayerDirectory
  ) throws(Errno) -> Bool {
    guard let link = links[status.identity], link.original.changed == status.changed else { return false }
    if let present = try? parent.attributes(of: name), present.identity == link.identity { return true }
    let former = plan.steps[link.step]
    var directories = ApplyDirectories(plan, target.layer.root) { $0.targetName }
    do throws(Errno) {
      let directory = try directories.directory(of: former.parent)
      let file = try withCName(former.targetName) { name throws(Errno) in
        try directory.openPath(name, identity: link.identity)
      }
      try target.replace(name, in: parent, byLinkTo: file)
      return true
    } catch {
      if error.meansFullDisk || error == .readOnlyFileSystem { throw error }
      return false
    }
  }

  // MARK: - Directories

  /// Gives a directory of the target its attributes and times, after its entries, and waits until the disk has them.
  private mutating func finish(_ index: Int) {
    if failed.contains(index), !plan.steps[index].isOpaque { return }
    do throws(Errno) {
      let directory = try targets.directory(of: index)
      if index > 0, plan.steps[index].isWhole {
        do throws(Errno) { try setAttributes(of: directory, index) } catch { fail(index, error) }
      }
      guard changed.contains(index) else { return }
      try directory.withDescriptor { directory throws(Errno) in
        try directory.unlocking(".", relocks: true) { () throws(Errno) in
          try directory.open(".", [.read, .directory]).synchronize(dataOnly: false)
        }
      }
    } catch {
      unsynchronized.insert(index)
      fail(index, error)
    }
  }

  private mutating func setAttributes(of directory: LayerDirectory, _ index: Int) throws(Errno) {
    let source = try sources.directory(of: index)
    let (wanted, present) = (try attributes(of: source), try CopiedAttributes(of: directory))
    let (own, other) = (wanted.status.modified, present.status.modified)
    // As the mount shows it while both layers have the directory: the latest time, unless the top layer's hides the other.
    var isHidden =
      plan.steps[index].isOpaque || plan.ancestors(of: index).contains { plan.steps[$0].isOpaque }
    if !isHidden { isHidden = try source.supersedes(other) }
    let modified = isHidden ? own : max(own, other)
    try directory.withDescriptor { directory throws(Errno) in
      if !wanted.isSame(as: present) { try wanted.replace(present, of: directory) }
      try directory.setTimes(accessed: nil, modified: .at(modified))
    }
  }
}
