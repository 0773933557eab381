import Posix

/// Finds out what it takes to apply the top layer of a stack to a folder below it. Changes nothing.
///
/// The target's entries get the top layer's only where the mount shows the same before and after: a layer between the two can
/// hide the target's entry, or have what a whiteout of the top layer hides. Such entries are kept where they are.
public struct ApplyPlanner {
  /// A directory of the view that the top layer takes part in.
  struct Frame {
    let step: Int
    let source: LayerDirectory
    /// nil if the target has no such directory yet.
    let target: LayerDirectory?
    /// The directories of the layers between, which hide none of the target.
    let between: [LayerDirectory]
    /// What the layers below the target show; nil if they have nothing, or it is hidden.
    let below: MergedDirectory?
    /// Whether the top layer hides the target's entries.
    let isInOpaque: Bool
    /// nil if the view hides no names.
    let place: HiddenNames.Place?
    let listing: ApplyListing
    /// Of a folder for a language: the directories above in the top layer and those between, whose catalogs contribute to the
    /// tables in it.
    var catalogFolders: [LayerDirectory] = []
    var names: ArraySlice<[UInt8]> = []
  }

  private let stack: LayerStack
  let target: Int
  /// Names in the mount's root that no layer's entries have.
  let reserved: Set<[UInt8]>
  let mergesTables: Bool
  private let hidden: HiddenNames?
  /// Is passed the number of entries met.
  private let progress: (Int) -> Void
  /// The frames of directories that lead to paths, by their steps.
  private var leading: [[[UInt8]]: Frame] = [:]

  /// The plan so far.
  public private(set) var plan = ApplyPlan()

  /// - Parameters:
  ///   - stack: the layers of the mount, top first.
  ///   - target: the index of the layer that gets the entries.
  ///   - reserved: names in the mount's root that no layer's entries have.
  ///   - mergesTables: whether the mount merges tables of strings.
  ///   - hidden: the names that the mount hides: they stay where they are.
  ///   - progress: is passed the number of entries met.
  /// - Throws: what reading the roots of the layers throws.
  public init(
    _ stack: LayerStack, target: Int, reserved: Set<[UInt8]>, mergesTables: Bool, hidden: HiddenNames?,
    progress: @escaping (Int) -> Void
  ) throws(Errno) {
    (self.stack, self.target, self.reserved) = (stack, target, reserved)
    (self.mergesTables, self.hidden, self.progress) = (mergesTables, hidden, progress)
    leading[[]] = try makeRoot()
  }

  private mutating func makeRoot() throws(Errno) -> Frame {
    let (source, root) = (stack.layers[0].root, stack.layers[target].root)
    let (between, coverer) = try partsBetween()
    var step = ApplyPlan.Step(
      parent: 0, name: [], targetName: [], source: .directory, action: .merge, kind: .directory)
    step.isOpaque = try source.isOpaque()
    if let coverer {
      step.action = .keep
      step.obstacle = .covered(layer: coverer)
    } else if step.isOpaque, let other = between.first {
      step.action = .keep
      step.obstacle = .uncovered(layer: other.layer)
    }
    var below = try rootBelow()
    step.becomesOpaque = step.isOpaque && below != nil
    let isRootOpaque = try root.isOpaque()
    if step.isOpaque || isRootOpaque { below = nil }
    plan.steps = [step]
    return Frame(
      step: 0, source: source, target: root, between: between, below: below, isInOpaque: step.isOpaque,
      place: hidden?.root, listing: try ApplyListing(source, root))
  }

  /// The roots of the layers between the two, and the first of them that is opaque.
  private func partsBetween() throws(Errno) -> (parts: [LayerDirectory], coverer: Int?) {
    var parts: [LayerDirectory] = []
    for layer in stack.layers[1..<target] where !layer.isAbsent {
      if try layer.root.isOpaque() { return (parts, layer.root.layer) }
      parts.append(layer.root)
    }
    return (parts, nil)
  }

  private func rootBelow() throws(Errno) -> MergedDirectory? {
    let layers = stack.layers[(target + 1)...].filter { !$0.isAbsent }
    return layers.isEmpty ? nil : try LayerStack(layers: Array(layers)).root()
  }

  // MARK: - Paths

  /// Adds what is at a path of the top layer, and below it.
  /// - Returns: false if the top layer has nothing there.
  /// - Throws: what reading the directories above it throws.
  public mutating func add(_ path: [[UInt8]]) throws(Errno) -> Bool {
    guard var frame = leading[[]] else { return false }
    if plan.steps[0].action == .keep { return true }
    guard let last = path.last else {
      plan.steps[0].isWhole = true
      addBelow(frame)
      return true
    }
    for (index, name) in path.dropLast().enumerated() {
      let count = plan.steps.count
      if plan.steps[frame.step].isOpaque { return keepBelowOpaque(name, in: frame) }
      guard let next = try lead(to: name, in: frame, path[...index]) else { return plan.steps.count > count }
      frame = next
    }
    guard let name = frame.listing.name(last) else { return false }
    if plan.steps[frame.step].isOpaque { return keepBelowOpaque(name, in: frame) }
    if let inner = add(name, in: frame) { addBelow(inner) }
    return true
  }

  /// A directory that is only on the way to a path.
  private mutating func lead(
    to name: [UInt8], in frame: Frame, _ path: ArraySlice<[UInt8]>
  ) throws(Errno) -> Frame? {
    if let known = leading[Array(path)] { return known }
    guard let name = frame.listing.name(name), frame.listing.isDirectory(name),
      let inner = add(name, in: frame)
    else { return nil }
    // It stays in the top layer.
    (plan.steps[inner.step].isWhole, plan.steps[inner.step].obstacle) = (false, nil)
    if plan.steps[inner.step].action == .change { plan.steps[inner.step].action = .merge }
    leading[Array(path)] = inner
    return inner
  }

  private mutating func keepBelowOpaque(_ name: [UInt8], in frame: Frame) -> Bool {
    append(name, in: frame, .nothing, .keep, frame.listing.kind(name), .opaqueAbove)
    return true
  }

  /// Adds all that is in a directory, however deep.
  private mutating func addBelow(_ frame: Frame) {
    var frames = [frame]
    begin(&frames[0])
    while !frames.isEmpty {
      guard let name = frames[frames.count - 1].names.popFirst() else {
        frames.removeLast()
        continue
      }
      guard var inner = add(name, in: frames[frames.count - 1]) else { continue }
      begin(&inner)
      frames.append(inner)
    }
  }

  /// Plans the removal of what an opaque directory hides, in those below it as well, and prepares to read the directory.
  private mutating func begin(_ frame: inout Frame) {
    frame.names = frame.listing.names[...]
    guard frame.isInOpaque, let directory = frame.target else { return }
    for (name, kind) in frame.listing.targetOnly where !isHidden(name, in: frame) {
      if frame.step == 0, isReserved(name) { continue }
      // By its own spelling: the target can have others, which go by steps of their own.
      let index = append(name, in: frame, .nothing, .remove, kind, targetName: name)
      let count = count(name, in: directory)
      plan.steps[index].count = count
    }
  }

  // MARK: - Entries

  @discardableResult
  mutating func append(
    _ name: [UInt8], in frame: Frame, _ source: ApplyPlan.Source, _ action: ApplyPlan.Action,
    _ kind: FileKind, _ obstacle: ApplyPlan.Obstacle? = nil, targetName: [UInt8]? = nil
  ) -> Int {
    let targetName = targetName ?? frame.listing.targetName(name)
    plan.steps.append(
      ApplyPlan.Step(
        parent: frame.step, name: name, targetName: targetName, source: source, action: action, kind: kind,
        obstacle: obstacle))
    progress(plan.steps.count)
    return plan.steps.count - 1
  }

  mutating func update(_ step: Int, _ body: (inout ApplyPlan.Step) -> Void) { body(&plan.steps[step]) }

  /// Adds an entry of the top layer.
  /// - Returns: the directory that it is, if what is in it can be applied.
  private mutating func add(_ name: [UInt8], in frame: Frame) -> Frame? {
    if isHidden(name, in: frame) { return nil }
    do throws(Errno) {
      if frame.step == 0, isReserved(name) {
        append(name, in: frame, .nothing, .keep, frame.listing.kind(name), .reserved)
        return nil
      }
      if frame.listing.isAmbiguous(name) {
        append(name, in: frame, .nothing, .keep, frame.listing.kind(name), .spellings)
        return nil
      }
      return try withCName(name) { bytes throws(Errno) in try addEntry(name, bytes, in: frame) }
    } catch {
      append(name, in: frame, .nothing, .keep, frame.listing.kind(name), .unreadable(error))
      return nil
    }
  }

  private func isHidden(_ name: [UInt8], in frame: Frame) -> Bool {
    guard let place = frame.place else { return false }
    return (try? withCName(name) { name throws(Errno) in place.hides(name) }) ?? false
  }

  private func isReserved(_ name: [UInt8]) -> Bool {
    reserved.contains { $0 == name || (stack.foldsNames && NameFolding.areEqual($0, name)) }
  }

  private mutating func addEntry(
    _ name: [UInt8], _ bytes: CName, in frame: Frame
  ) throws(Errno) -> Frame? {
    switch try frame.source.findExact(bytes, isLikelyDirectory: false) {
    case .whiteout: try addWhiteout(name, bytes, in: frame)
    case .nothing:
      // Without a marker, the entry was removed after the directory had been read, which does not delete the target's.
      guard try frame.source.hasWhiteoutMarker(bytes, length: name.count) else {
        throw .noSuchFileOrDirectory
      }
      try addWhiteout(name, bytes, in: frame)
    case .file(let status): try addFile(name, bytes, status, in: frame)
    case .directory(let directory, _): return try addDirectory(name, bytes, directory, in: frame)
    }
    return nil
  }

  /// How many entries a directory of the target has that goes; 0 for another entry.
  func count(_ name: [UInt8], in directory: LayerDirectory) -> Int {
    let found = try? withCName(name) { name throws(Errno) in
      try directory.findExact(name, isLikelyDirectory: false)
    }
    guard case .directory(let inner, _) = found else { return 0 }
    return (try? inner.entryCount { _ in }) ?? 0
  }
}
