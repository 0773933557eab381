import Posix

extension ApplyRun {
  /// Empties the top layer of what the target has now. What has failed, or has changed meanwhile, stays.
  public mutating func empty() {
    var directories = ApplyDirectories(plan, source.layer.root) { $0.name }
    for kept in plan.steps.indices where plan.steps[kept].action == .keep {
      for above in plan.ancestors(of: kept) where plan.steps[above].isOpaque { failed.insert(above) }
    }
    for index in plan.steps.indices where plan.steps[index].isOpaque && isDone(index) {
      do throws(Errno) { try uncover(index, &directories) } catch { fail(index, error) }
    }
    // From the inside out.
    for index in plan.steps.indices.dropFirst().reversed() where isDone(index) && !isHeld(index) {
      progress(plan.steps.count - index, 0)
      do throws(Errno) { try takeAway(index, &directories) } catch {
        // It was removed meanwhile.
        if error != .noSuchFileOrDirectory { fail(index, error) }
      }
    }
  }

  private func isDone(_ index: Int) -> Bool {
    let step = plan.steps[index]
    if step.isDirectory, !step.isWhole { return false }
    return step.action != .keep && !failed.contains(index)
  }

  /// Whether an opaque directory around it stays, in which nothing of the target shows, or the disk may not have what the
  /// target got.
  private func isHeld(_ index: Int) -> Bool {
    plan.ancestors(of: index).contains {
      (plan.steps[$0].isOpaque && failed.contains($0)) || unsynchronized.contains($0)
    }
  }

  /// Has a directory no longer hide the target's, which has the same entries now.
  private mutating func uncover(_ index: Int, _ directories: inout ApplyDirectories) throws(Errno) {
    if isHeld(index) { return }
    try source.removeOpaqueMarks(of: directories.directory(of: index))
    if index == 0 { return }
    let parent = try directories.directory(of: plan.steps[index].parent)
    try withCName(plan.steps[index].name) { name throws(Errno) in
      try source.takeMarkerAway(name, in: parent)
    }
  }

  private mutating func takeAway(_ index: Int, _ directories: inout ApplyDirectories) throws(Errno) {
    let step = plan.steps[index]
    if case .nothing = step.source { return }
    if step.isDirectory, step.obstacle != nil { return }
    let parent = try directories.directory(of: step.parent)
    try withCName(step.name) { name throws(Errno) in
      switch step.source {
      case .nothing: break
      case .whiteout: try source.takeWhiteoutAway(name, in: parent)
      case .directory: _ = try source.takeDirectoryAway(name, in: parent)
      case .file: try takeFileAway(index, name, in: parent)
      }
    }
  }

  private mutating func takeFileAway(_ index: Int, _ name: CName, in parent: LayerDirectory) throws(Errno) {
    guard let copied = copied[index] else { return }
    // First: without the entry, a marker beside it would hide what the target has now.
    try source.takeMarkerAway(name, in: parent)
    let isTaken = try source.takeAway(name, in: parent) { $0.hasContent(of: copied) }
    if !isTaken { throw .staleFileHandle }
  }
}

extension FileStatus {
  /// Whether nothing speaks against it that this is the same file as before, with the same content. The time of the last change is
  /// another one after a rename, or once another name of the file was removed.
  fileprivate func hasContent(of former: FileStatus) -> Bool {
    (identity, mode, size, modified) == (former.identity, former.mode, former.size, former.modified)
      && (owner, group, rdev) == (former.owner, former.group, former.rdev)
  }
}

extension UpperLayer {
  /// The identity of an entry of this layer that is a whole copy of another layer's already; nil if there is none.
  func copyPresent(
    of original: CName, _ status: FileStatus, in source: LayerDirectory, _ name: CName,
    _ parent: LayerDirectory
  ) throws(Errno) -> FileIdentity? {
    guard case .file(let present) = try parent.findExact(name, isLikelyDirectory: false),
      present.hasAttributes(of: status)
    else { return nil }
    let copy = try parent.openPath(name, identity: present.identity)
    let file = try source.openPath(original, identity: status.identity)
    guard try CopiedAttributes(present, copy).isSame(as: CopiedAttributes(status, file)) else { return nil }
    switch status.kind {
    case .symbolicLink: return try copy.linkTarget() == file.linkTarget() ? present.identity : nil
    case .regular: break
    default: return present.identity
    }
    let opened = try parent.openFile(name, identity: present.identity)
    let isSame = try opened.hasContent(of: source.openFile(original, identity: status.identity))
    guard isSame else { return nil }
    // Another program can have copied it just now: the top layer's goes once the disk has this one.
    try opened.synchronize(dataOnly: false)
    return present.identity
  }
}

extension FileStatus {
  fileprivate func hasAttributes(of other: FileStatus) -> Bool {
    (mode, size, modified, rdev) == (other.mode, other.size, other.modified, other.rdev)
      && (owner, group) == (other.owner, other.group)
  }
}

extension LayerFile {
  /// Whether the content is the same, byte by byte.
  fileprivate func hasContent(of other: LayerFile) throws(Errno) -> Bool {
    let chunk = 1 << 16
    var (own, others) = ([UInt8](repeating: 0, count: chunk), [UInt8](repeating: 0, count: chunk))
    var offset: Int64 = 0
    while true {
      let count = try Self.read(self, &own, at: offset)
      let otherCount = try Self.read(other, &others, at: offset)
      if count != otherCount || own[..<count] != others[..<count] { return false }
      if count == 0 { return true }
      offset += Int64(count)
    }
  }

  private static func read(
    _ file: LayerFile, _ buffer: inout [UInt8], at offset: Int64
  ) throws(Errno) -> Int {
    var result: Result<Int, Errno> = .success(0)
    buffer.withUnsafeMutableBytes { bytes in
      do throws(Errno) { result = .success(try file.read(into: bytes, at: offset)) } catch {
        result = .failure(error)
      }
    }
    return try result.get()
  }
}
